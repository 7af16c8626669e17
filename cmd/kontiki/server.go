package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"kontiki/api"
	"kontiki/api/audit"
	"kontiki/api/auth"
	"kontiki/api/duties"
	"kontiki/api/registry"
	"kontiki/api/storage"
	"kontiki/cluster"
	"kontiki/cluster/pages"
	"kontiki/cluster/pki"
	"kontiki/fsm"
	"kontiki/watch"
)

// stopTimeout bounds a graceful stop: requests in progress may finish and the
// leadership may move.
const stopTimeout = 10 * time.Second

// releaseAfter is how long after the start nothing runs any more that only a start runs.
const releaseAfter = 10 * time.Second

func newServerCommand() *cobra.Command {
	cfg := DefaultConfig()
	cmd := &cobra.Command{
		Use:   "server --data-dir DIR",
		Short: "Run a node",
		Long: `Run a node.

With --data-dir alone it is a cluster of one. Others join it with --join, the
API address of any member, and --token, which "kontiki token create" prints. To
form a cluster of three at once, start the first with --bootstrap-expect 3, and
the other two with --join, --token and --bootstrap-expect 3. The same command
line serves the first boot and every restart.

Every flag can be set by an environment variable: --data-dir by
KONTIKI_DATA_DIR, and so on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLogging(cfg); err != nil {
				return err
			}
			log := newLogger(cfg, cmd.ErrOrStderr())
			bridgeLibraries(log)
			if err := acceptFaults(&cfg, log); err != nil {
				return err
			}
			return Run(cmd.Context(), cfg, log)
		},
	}
	cfg.AddFlags(cmd.Flags())
	return cmd
}

// Run runs a server until ctx ends or it fails.
func Run(ctx context.Context, cfg Config, log hclog.Logger) error {
	s, err := Start(ctx, cfg, log)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	notifySystemd(daemon.SdNotifyReady, log)
	defer time.AfterFunc(releaseAfter, pages.ReleaseProgram).Stop()
	defer keepHeapRoom()()
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.Failed():
	}
	notifySystemd(daemon.SdNotifyStopping, log)
	stopCtx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if failure != nil {
		return errors.Join(failure, s.Fail(stopCtx))
	}
	return s.Stop(stopCtx)
}

// Server is a running node: what production runs and tests run alike.
type Server struct {
	Node       *cluster.Node
	State      *fsm.FSM
	Hub        *watch.Hub
	Kubeconfig string // file
	URL        string // of the API

	api          *api.Server
	audit        *audit.Log
	failed       chan error
	certificates *certificates
	data         *ownership
}

// Start starts a node and returns when it answers. Whether it is ready, /readyz
// tells. Ctx ends the search for a member to join; nothing later.
func Start(ctx context.Context, cfg Config, log hclog.Logger) (*Server, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.APIAddr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API on %s: %w; choose another --api-addr or stop what uses it", cfg.APIAddr, err)
	}
	s := &Server{failed: make(chan error, 2)}
	if err = join(ctx, cfg, log.Named("join")); err == nil {
		s.data, err = own(ctx, cfg.DataDir)
	}
	if err == nil {
		err = s.start(cfg, listener, log)
	}
	if err != nil {
		listener.Close()
		s.data.release()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(cfg Config, listener net.Listener, log hclog.Logger) error {
	address := reachable(listener.Addr().String(), cfg.PeerAddr)
	root, err := pki.EnsureCluster(cfg.PKIDir)
	if err != nil {
		return err
	}
	root.Now = cfg.Clock.Now
	node, err := identify(cfg, root, address)
	if err != nil {
		return err
	}
	authenticator, err := auth.NewAuthenticator(node.Identity.Pool(), cfg.TokenAuthFile)
	if err != nil {
		return err
	}
	if s.audit, err = audit.Open(cfg.Audit); err != nil {
		return err
	}
	node.Logger = log
	s.Hub = watch.NewHub(watch.Config{})
	memos := storage.NewMemos(storage.DefaultDecodedBytes)
	s.State = fsm.New(s.Hub, memos)
	if s.Node, err = cluster.Open(node, s.State); err != nil {
		return err
	}
	// From here on the data directory is this process's alone.
	s.Kubeconfig = filepath.Join(cfg.DataDir, adminFile)
	s.certificates = &certificates{
		cfg: cfg, root: root, identity: node.Identity, kubeconfig: s.Kubeconfig, address: address, log: log.Named("certificates"),
	}
	if err := s.certificates.start(); err != nil {
		return errors.Join(err, s.Node.Abort())
	}
	backend := storage.Backend{Proposer: s.Node, State: s.State, Feed: s.Hub, Silence: s.Node.Silence, CaughtUp: s.Node.CaughtUp(), Memos: memos}
	s.api, err = api.New(api.Config{
		Name: cfg.Name, Build: buildVersion(), Address: address,
		TLS: serverTLS(node.Identity), Authenticator: authenticator, Root: root, Certificates: s.certificates,
		EventTTL: cfg.EventTTL, Kubelet: cfg.Kubelet, Ranges: cfg.Ranges,
		Node: s.Node, Backend: backend, Logger: log.Named("api"),
		Reporter: s.Node, Window: s.Hub.Stats, Audit: s.audit,
	})
	if err != nil {
		s.certificates.stop()
		return errors.Join(err, s.Node.Abort())
	}
	s.lead(cfg.Ranges, backend, log.Named("duties"))
	if cfg.Backups.Dir != "" {
		s.Node.OnLeader(func(ctx context.Context) { s.Node.Backups(ctx, cfg.Backups, log.Named("backup")) })
	}
	go func() {
		if err := s.api.Serve(listener); err != nil {
			s.failed <- err
		}
	}()
	s.URL = "https://" + address
	log.Info("serving", "api", s.URL, "peer", s.Node.PeerAddr(), "gossip", s.Node.GossipAddr(), "kubeconfig", s.Kubeconfig)
	return nil
}

// lead registers what this node does for the whole cluster while it leads.
func (s *Server) lead(ranges registry.Ranges, backend storage.Backend, log hclog.Logger) {
	client := s.api.Client()
	s.Node.OnLeader(func(ctx context.Context) { duties.EnsureNamespaces(ctx, client.CoreV1(), log) })
	s.Node.OnLeader(func(ctx context.Context) { duties.ExpireEntries(ctx, backend, log) })
	s.Node.OnLeader(func(ctx context.Context) {
		if err := duties.RepairServices(ctx, s.api.ClientConfig(), s.api.Allocators(), ranges); err != nil {
			log.Error("addresses and ports of services are not repaired", "error", err)
		}
	})
	s.Node.OnLeader(func(ctx context.Context) {
		duties.PublishServers(ctx, client.CoreV1(), s.liveAddresses, ranges.ServersIP(), log)
	})
	s.Node.OnLeader(func(ctx context.Context) {
		if err := duties.Control(ctx, s.api.ClientConfig(), s.api.Sources()); err != nil {
			log.Error("garbage collection and namespace deletion do not run", "error", err)
		}
	})
}

// liveAddresses are the API addresses of the members that are up.
func (s *Server) liveAddresses() []string {
	var addresses []string
	for _, m := range s.Node.Members() {
		if m.Alive && m.Role != cluster.RoleNone {
			addresses = append(addresses, m.APIAddr)
		}
	}
	return addresses
}

// identify makes or loads this node's certificate and returns who it is in its
// cluster.
func identify(cfg Config, root *pki.Cluster, address string) (cluster.Config, error) {
	node := cluster.DefaultConfig()
	hosts, err := certificateHosts(cfg)
	if err != nil {
		return node, err
	}
	if node.Identity, err = pki.NodeIdentity(root, identityDir(cfg.DataDir), cfg.Name, hosts); err != nil {
		return node, err
	}
	node.Name, node.DataDir, node.GossipKey = cfg.Name, cfg.DataDir, root.GossipKey
	node.PeerAddr, node.GossipAddr, node.APIAddr = cfg.PeerAddr, cfg.GossipAddr, address
	node.Join, node.BootstrapExpect, node.NonVoter = cfg.Peers, cfg.BootstrapExpect, cfg.NonVoter
	node.Version = buildVersion()
	if node.DiskReserve, err = parseReserve(cfg.DiskReserve); err != nil {
		return node, err
	}
	node.DiskSpace = cfg.DiskSpace
	node.Tuning, node.Faults = cfg.Tuning, cfg.Faults
	return node, nil
}

// serverTLS asks clients for a certificate without insisting on one: who sends
// none, or a wrong one, is told so by the API, with a Status.
func serverTLS(identity *pki.Identity) *tls.Config {
	return &tls.Config{
		GetCertificate: identity.GetCertificate,
		ClientAuth:     tls.RequestClientCert,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	}
}

// Failed delivers the error that ends the server, if one does.
func (s *Server) Failed() <-chan error {
	failed := make(chan error, 1)
	go func() {
		select {
		case err := <-s.failed:
			failed <- err
		case err := <-s.Node.Fatal():
			failed <- err
		}
	}()
	return failed
}

// Stop ends the server: first for clients, whose requests may finish, then for
// the other nodes, and last for what the leader's duties used.
func (s *Server) Stop(ctx context.Context) error {
	s.certificates.stop()
	return errors.Join(s.api.Shutdown(ctx), s.Node.Close(ctx), s.api.Close(), s.audit.Close(), s.data.release())
}

// Fail ends a server that cannot go on: first for the other nodes, who would wait for it, or
// elect it. What clients wait for would not come either; they are told to ask another node.
func (s *Server) Fail(ctx context.Context) error {
	s.certificates.stop()
	return errors.Join(s.Node.Abort(), s.api.Shutdown(ctx), s.api.Close(), s.audit.Close(), s.data.release())
}

// Abort ends the server at once, with no word to anybody: what a crash looks
// like to clients and to other nodes.
func (s *Server) Abort() error {
	s.certificates.stop()
	return errors.Join(s.api.Close(), s.Node.Abort(), s.audit.Close(), s.data.release())
}
