package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"kontiki/api/audit"
	"kontiki/api/registry"
	"kontiki/cluster"
)

// Config is what the flags of the server command say.
type Config struct {
	Name            string
	DataDir         string
	APIAddr         string
	PeerAddr        string
	GossipAddr      string
	Join            []string
	Token           string
	TokenFile       string
	Peers           []string
	BootstrapExpect int
	NonVoter        bool
	PKIDir          string
	TokenAuthFile   string
	EventTTL        time.Duration
	Kubelet         registry.Kubelet
	Ranges          registry.Ranges
	LogLevel        string
	LogFormat       string
	Audit           audit.Options
	DiskReserve     string
	Backups         cluster.BackupSchedule

	// What follows has no flags: it is for tests.
	Tuning    cluster.Tuning
	Faults    cluster.Faults
	DiskSpace func(dir string) (free, total uint64, err error)
	Clock     clock.WithTicker // for certificates and tokens
}

// DefaultConfig is a single node on loopback.
func DefaultConfig() Config {
	return Config{
		APIAddr:     "127.0.0.1:6443",
		EventTTL:    time.Hour,
		Ranges:      registry.DefaultRanges(),
		LogLevel:    "info",
		LogFormat:   logText,
		DiskReserve: "5%",
		Backups:     cluster.BackupSchedule{Interval: time.Hour, Keep: 24},
		Tuning:      cluster.DefaultConfig().Tuning,
		Clock:       clock.RealClock{},
	}
}

// AddFlags makes the flags that set c.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Name, "name", c.Name, "name of this node, unique in its cluster and for ever (default: the host's name)")
	flags.StringVar(&c.DataDir, "data-dir", c.DataDir, "directory for everything this node keeps (required)")
	flags.StringVar(&c.APIAddr, "api-addr", c.APIAddr, "host:port of the Kubernetes API (HTTPS)")
	flags.StringVar(&c.PeerAddr, "peer-addr", c.PeerAddr, "host:port for raft and forwarding between nodes (TCP, mutual TLS) (default: --api-addr's host, port 7301)")
	flags.StringVar(&c.GossipAddr, "gossip-addr", c.GossipAddr, "host:port for finding other nodes (TCP and UDP, encrypted) (default: --peer-addr's host, port 7302)")
	flags.StringSliceVar(&c.Join, "join", c.Join, "API addresses of members of the cluster to join, comma separated; used with a token at the first start, later not needed")
	flags.StringVar(&c.Token, "token", c.Token, "join token that \"kontiki token create\" printed on a member (others on this machine can see a command line: prefer KONTIKI_TOKEN or --token-file)")
	flags.StringVar(&c.TokenFile, "token-file", c.TokenFile, "file with the join token")
	flags.StringSliceVar(&c.Peers, "peers", c.Peers, "gossip addresses of other nodes, comma separated, for nodes that share --pki-dir; a node that joined by token knows them")
	flags.IntVar(&c.BootstrapExpect, "bootstrap-expect", c.BootstrapExpect, "how many new nodes form a new cluster together; ignored by a node that has data (default: 1 without --join and --peers)")
	flags.BoolVar(&c.NonVoter, "non-voter", c.NonVoter, "enter the cluster without a vote, as a read replica; kontiki members promote and demote change that later, and their word counts")
	flags.StringVar(&c.PKIDir, "pki-dir", c.PKIDir, "directory with the cluster's CA and gossip key; who finds none and does not join makes it (default: DATA-DIR/cluster)")
	flags.StringVar(&c.TokenAuthFile, "token-auth-file", c.TokenAuthFile, "CSV file of bearer tokens: token,user,uid,\"group,...\"")
	flags.DurationVar(&c.EventTTL, "event-ttl", c.EventTTL, "how long Event objects are kept")
	flags.StringVar(&c.Kubelet.CAFile, "kubelet-certificate-authority", c.Kubelet.CAFile, "file with the CA of the nodes' kubelets, for pod logs and the like (default: not checked)")
	flags.StringVar(&c.Kubelet.CertFile, "kubelet-client-certificate", c.Kubelet.CertFile, "file with the client certificate to show to kubelets")
	flags.StringVar(&c.Kubelet.KeyFile, "kubelet-client-key", c.Kubelet.KeyFile, "file with the key of --kubelet-client-certificate")
	flags.IPNetVar(&c.Ranges.ClusterIPs, "service-cluster-ip-range", c.Ranges.ClusterIPs, "range of addresses for services, the same on all nodes")
	flags.Var(&c.Ranges.NodePorts, "service-node-port-range", "range of ports for services of type NodePort, the same on all nodes")
	flags.StringVar(&c.Backups.Dir, "backup-dir", c.Backups.Dir, "directory for scheduled backups, written by the node that leads; set it on every node (default: none are made)")
	flags.DurationVar(&c.Backups.Interval, "backup-interval", c.Backups.Interval, "how often a backup is made")
	flags.IntVar(&c.Backups.Keep, "backup-keep", c.Backups.Keep, "how many of these backups stay in --backup-dir; older ones are deleted, other files never")
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "trace, debug, info, warn or error")
	flags.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
	c.Audit.AddFlags(flags)
	flags.StringVar(&c.DiskReserve, "disk-reserve", c.DiskReserve, "free space on the data directory's disk below which writes are refused, the largest first: a size (2Gi), or a share (5%, between 64Mi and 4Gi); 0 is none")
}

// Complete fills in what follows from the rest.
func (c *Config) Complete() error {
	if c.DataDir == "" {
		return fmt.Errorf("--data-dir is required: name a directory for this node's data")
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	c.DataDir = dir
	if c.PKIDir == "" {
		c.PKIDir = pkiDir(c.DataDir)
	}
	if c.Name == "" {
		if c.Name, err = os.Hostname(); err != nil {
			return fmt.Errorf("--name is not set and the host has no name: %w", err)
		}
	}
	if c.NonVoter && len(c.Join) == 0 && len(c.Peers) == 0 {
		return fmt.Errorf("--non-voter: a node without a vote is no cluster: name other nodes with --join or --peers")
	}
	if err := errors.Join(checkAddresses("--join", c.Join), checkAddresses("--peers", c.Peers), checkLogging(*c)); err != nil {
		return err
	}
	if _, err := parseReserve(c.DiskReserve); err != nil {
		return err
	}
	if c.Backups.Dir != "" && (c.Backups.Interval < time.Second || c.Backups.Keep < 1) {
		return fmt.Errorf("--backup-interval %s, --backup-keep %d: want at least 1s and 1", c.Backups.Interval, c.Backups.Keep)
	}
	switch {
	case c.EventTTL < time.Second:
		return fmt.Errorf("--event-ttl %s: want at least 1s", c.EventTTL)
	case c.BootstrapExpect == 1 && len(c.Join) > 0:
		return fmt.Errorf("--bootstrap-expect 1 makes a cluster of its own, --join enters another one: set only one of them")
	}
	if err := c.Ranges.Validate(); err != nil {
		return err
	}
	known, err := cluster.KnownPeers(c.DataDir)
	if err != nil {
		return err
	}
	return c.completeAddresses(len(known) > 0)
}

// checkAddresses refuses what nobody could ever reach, which would be tried for ever.
func checkAddresses(flag string, addresses []string) error {
	for _, address := range addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("%s %q is not host:port", flag, address)
		}
	}
	return nil
}

// completeAddresses has nodes talk to each other where clients talk to this one.
// A node that is alone, by its flags and by what it remembers, on loopback,
// needs no fixed ports for that: any number of such nodes run on a machine.
func (c *Config) completeAddresses(knowsOthers bool) error {
	host, _, err := net.SplitHostPort(c.APIAddr)
	if err != nil {
		return fmt.Errorf("--api-addr %q is not host:port", c.APIAddr)
	}
	alone := !knowsOthers && len(c.Join) == 0 && len(c.Peers) == 0 && c.BootstrapExpect <= 1
	switch {
	case c.PeerAddr != "":
	case alone && c.GossipAddr == "" && (isWildcard(host) || isLoopback(host)):
		c.PeerAddr, c.GossipAddr = "127.0.0.1:0", "127.0.0.1:0"
	case isWildcard(host):
		return fmt.Errorf("--api-addr %s is every address of this machine: set --peer-addr to the one that other nodes reach", c.APIAddr)
	default:
		c.PeerAddr = net.JoinHostPort(host, peerPort)
	}
	if c.GossipAddr == "" {
		if host, _, err = net.SplitHostPort(c.PeerAddr); err != nil {
			return fmt.Errorf("--peer-addr %q is not host:port", c.PeerAddr)
		}
		c.GossipAddr = net.JoinHostPort(host, gossipPort)
	}
	return nil
}

// parseReserve reads the value of --disk-reserve.
func parseReserve(text string) (cluster.DiskReserve, error) {
	bad := fmt.Errorf("--disk-reserve %q: want a size like 2Gi or a share like 5%%", text)
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || percent < 0 || percent >= 100 {
			return cluster.DiskReserve{}, bad
		}
		reserve := cluster.DefaultConfig().DiskReserve
		reserve.Percent = percent
		return reserve, nil
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() < 0 {
		return cluster.DiskReserve{}, bad
	}
	return cluster.DiskReserve{Least: uint64(size.Value())}, nil
}

// pkiDir is where a node keeps the cluster's CA unless it is told otherwise.
func pkiDir(dataDir string) string { return filepath.Join(dataDir, "cluster") }

const (
	peerPort   = "7301"
	gossipPort = "7302"
)
