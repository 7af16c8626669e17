package cluster

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster/pki"
)

// Config says who a node is and how it behaves. Start from DefaultConfig.
type Config struct {
	Name    string // unique in the cluster, for ever: it is the raft server ID
	DataDir string

	PeerAddr        string // listen address for raft and forwarding, host:port
	PeerAdvertise   string // what others dial; PeerAddr as bound if empty
	GossipAddr      string // listen address for memberlist, TCP and UDP
	GossipAdvertise string // what others dial; derived from PeerAdvertise's host if empty
	APIAddr         string // told to other nodes, not used here
	Version         string // told to other nodes, not used here

	// Join lists gossip addresses of other nodes. The same list serves first boot,
	// restart and scale-up. Those that the node learns it remembers, see KnownPeers.
	Join []string

	// BootstrapExpect is how many new nodes form a new cluster together. 0 without Join
	// is 1. A node that has data ignores it.
	BootstrapExpect int

	// NonVoter makes a new node one that replicates and serves but has no vote. What Promote
	// and Demote say later is kept in the data directory and counts.
	NonVoter bool

	Identity  *pki.Identity
	GossipKey []byte // 32 bytes
	Logger    hclog.Logger

	// OnLeader functions run while this node leads, see Node.OnLeader.
	OnLeader []func(context.Context)

	// DiskReserve is how much of the data directory's file system is kept free; below it,
	// commands are refused, the largest first. DiskSpace asks for its free and total bytes;
	// nil is the kernel's answer.
	DiskReserve DiskReserve
	DiskSpace   func(dir string) (free, total uint64, err error)

	known []string // KnownPeers at Open

	// Faults, if set, may fail or delay labelled operations. Nil in production.
	Faults Faults

	Tuning
}

// Tuning is what only tests and measurements change.
type Tuning struct {
	// HeartbeatTimeout is how long a follower waits for its leader, ElectionTimeout how
	// long for votes, LeaseTimeout after what silence of a majority a leader resigns.
	HeartbeatTimeout, ElectionTimeout, LeaseTimeout time.Duration

	// CommitTimeout is the pause after which raft, without new entries, repeats its commit
	// index to followers.
	CommitTimeout time.Duration

	MaxAppendEntries int
	// CompactBytes is how large the log's file must be before a start compacts it.
	CompactBytes      int64
	SnapshotThreshold uint64
	SnapshotInterval  time.Duration
	TrailingLogs      uint64

	// LogDeadline bounds one write to the log, StartTimeout the wait for the data directory's lock.
	LogDeadline, StartTimeout time.Duration

	MaxCommandBytes  int // one encoded command
	MaxInflightBytes int // all commands handed to raft and not yet applied

	// EnqueueTimeout bounds the wait for raft to take a command, VerifyTimeout a leader's
	// check that it leads, RetryFor all attempts of one Propose or ReadIndex, DialTimeout
	// connecting to a peer, PeerTimeout one raft RPC.
	EnqueueTimeout, VerifyTimeout, RetryFor, DialTimeout, PeerTimeout time.Duration

	// ReconcileInterval is how often a leader compares gossip with the raft configuration
	// when nothing happens; PromoteLag is how few entries behind a new node may vote, and
	// StableFor for how long it must have been no further behind. DeadAfter is how long a
	// voter must be silent before it may be removed, once it has been replaced.
	ReconcileInterval    time.Duration
	PromoteLag           uint64
	StableFor, DeadAfter time.Duration

	GossipInterval, ProbeInterval, ProbeTimeout time.Duration
}

// DefaultConfig returns the settings for three VMs on a LAN with SSDs.
func DefaultConfig() Config {
	return Config{
		PeerAddr:   ":7301",
		GossipAddr: ":7302",
		Logger:     hclog.NewNullLogger(),
		// Room for a snapshot and for the log until it is taken; 64 MiB for the smallest disks.
		DiskReserve: DiskReserve{Percent: 5, Least: 64 << 20, Most: 4 << 30},
		Tuning: Tuning{
			// Heartbeats pass through raft's main loop here (see transport), behind at most
			// one fsync of the log. 1 s is several times a bad fsync, and a killed leader
			// is replaced in 1 to 3 s.
			HeartbeatTimeout: time.Second,
			ElectionTimeout:  time.Second,
			LeaseTimeout:     time.Second,

			// Followers are told of commits at once (see commit.go); this is the second line. At
			// 10 ms an idle node takes 2.6 % of a core, at 100 ms 0.7 %, and a write through a
			// follower the same 2.5 ms.
			CommitTimeout:     100 * time.Millisecond,
			MaxAppendEntries:  256,
			CompactBytes:      64 << 20,
			SnapshotThreshold: 16384,
			SnapshotInterval:  30 * time.Second,
			TrailingLogs:      20480,

			LogDeadline:  10 * time.Second,
			StartTimeout: 2 * time.Second,

			MaxCommandBytes:  3 << 20, // Kubernetes' request limit; etcd's is half of it
			MaxInflightBytes: 32 << 20,

			EnqueueTimeout: 5 * time.Second,
			VerifyTimeout:  2 * time.Second,
			RetryFor:       10 * time.Second,
			DialTimeout:    time.Second,
			PeerTimeout:    10 * time.Second,

			ReconcileInterval: 10 * time.Second,
			PromoteLag:        256,
			StableFor:         5 * time.Second,
			DeadAfter:         time.Minute,

			GossipInterval: 200 * time.Millisecond,
			ProbeInterval:  time.Second,
			ProbeTimeout:   500 * time.Millisecond,
		},
	}
}

func (c *Config) validate() error {
	if err := pki.ValidateName(c.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	switch {
	case c.DataDir == "":
		return fmt.Errorf("%w: the data directory is not set", ErrConfig)
	case c.Identity == nil || c.Identity.Name != c.Name:
		return fmt.Errorf("%w: the identity is not that of node %s", ErrConfig, c.Name)
	case len(c.GossipKey) != 32:
		return fmt.Errorf("%w: the gossip key has %d bytes, want 32", ErrConfig, len(c.GossipKey))
	case c.BootstrapExpect < 0 || c.BootstrapExpect > maxFounders:
		return fmt.Errorf("%w: bootstrap-expect is %d, want 0 to %d", ErrConfig, c.BootstrapExpect, maxFounders)
	case c.BootstrapExpect == 1 && len(c.Join) > 0:
		return fmt.Errorf("%w: bootstrap-expect 1 makes a cluster of its own, join enters another one: set only one of them", ErrConfig)
	case c.BootstrapExpect > 0 && c.NonVoter:
		return fmt.Errorf("%w: a non-voter cannot bootstrap a cluster", ErrConfig)
	}
	for what, addr := range map[string]string{"peer address": c.PeerAddr, "gossip address": c.GossipAddr} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("%w: %s %q is not host:port", ErrConfig, what, addr)
		}
	}
	return nil
}

// expect is how many nodes bootstrap together; 0 is "never, only join". A node that knows
// of others never founds alone: if it has no data, it has lost it, or not got it yet.
func (c *Config) expect() int {
	switch {
	case c.BootstrapExpect <= 1 && len(c.known) > 0:
		return 0
	case c.BootstrapExpect == 0 && len(c.Join) == 0 && !c.NonVoter:
		return 1
	}
	return c.BootstrapExpect
}
