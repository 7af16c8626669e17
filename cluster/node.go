package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// Node is this process's part in a cluster.
type Node struct {
	cfg     Config
	self    raft.ServerID
	logger  hclog.Logger
	machine *fsm.FSM

	storage    *storage
	disk       *disk
	timings    Timings
	reporter   atomic.Pointer[func() []byte] // what this node tells about itself
	backed     atomic.Pointer[Backed]
	nodeFile   *nodeFile
	listener   *listener
	transport  *transport
	raft       *raft.Raft
	started    atomic.Pointer[raft.Raft] // raft, for the goroutines that raft itself starts
	gossip     *memberlist.Memberlist
	gossipAddr string
	roster     *roster
	foundings  foundings
	peers      *peers

	ids       *proposalIDs
	inflight  *semaphore
	changing  *semaphore // of 1: who changes the raft configuration
	transfer  transferWatch
	office    presidencies
	confirmed shared // the leader's read index
	asked     shared // a follower's question for it

	changed signal // leader, readiness or an address has changed
	members signal // gossip has changed

	firstCatchUp chan struct{} // closed by markCaughtUp
	markCaughtUp func()
	applied      chan struct{}                 // holds a token when a command was applied here
	lost         chan string                   // a leader whose connection ended
	led          atomic.Pointer[raft.ServerID] // who led last
	hasState     atomic.Bool                   // this node has a log or a snapshot
	waitingWith  []string                      // names of new nodes, as last told; enterLoop's
	known        []string                      // gossip addresses in peers.json; rememberLoop's after Open
	fatal        chan error

	ctx    context.Context // ends when the node closes
	cancel context.CancelFunc
	wg     sync.WaitGroup // the node's own loops
	close  sync.Once
	closed error // valid after close is done
}

// Open starts a node. It returns before the node has found others or a leader: Ready tells
// when it can serve. Errors are one line each and say what to do.
func Open(cfg Config, machine *fsm.FSM) (*Node, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	known, err := KnownPeers(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	cfg.known = known
	n := newNode(cfg, machine)
	for _, step := range []func() error{n.openStorage, n.openPort, n.openRaft, n.startGossip} {
		if err := step(); err != nil {
			n.Abort()
			return nil, err
		}
	}
	n.startLoops()
	return n, nil
}

func newNode(cfg Config, machine *fsm.FSM) *Node {
	n := &Node{
		cfg:          cfg,
		self:         raft.ServerID(cfg.Name),
		logger:       cfg.Logger.Named("cluster"),
		disk:         newDisk(&cfg, cfg.Logger.Named("disk")),
		machine:      machine,
		ids:          newProposalIDs(),
		inflight:     newSemaphore(max(cfg.MaxInflightBytes, cfg.MaxCommandBytes)),
		changing:     newSemaphore(1),
		firstCatchUp: make(chan struct{}),
		applied:      make(chan struct{}, 1),
		lost:         make(chan string, 1),
		fatal:        make(chan error, 1),
		known:        cfg.known,
	}
	n.markCaughtUp = sync.OnceFunc(func() { close(n.firstCatchUp) })
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.office.functions = append([]func(context.Context){n.reconcileLoop, n.commitLoop}, cfg.OnLeader...)
	n.confirmed.ask, n.asked.ask = n.confirmIndex, n.askLeader
	n.roster = &roster{logger: n.logger.Named("gossip"), meta: n.meta, members: make(map[string]member), strangers: make(map[string]string), onEvent: func() {
		n.members.Broadcast()
		n.changed.Broadcast()
	}}
	return n
}

// meta is how this node describes itself to the others.
func (n *Node) meta() memberMeta {
	return memberMeta{
		peerAddr: string(n.listener.advertise),
		apiAddr:  n.cfg.APIAddr,
		version:  n.cfg.Version,
		expect:   n.cfg.expect(),
		hasState: n.hasState.Load(),
		nonVoter: n.nodeFile.nonVoter(),
		founding: n.nodeFile.settled(),
	}
}

func (n *Node) openStorage() (err error) {
	n.disk.look()
	if err := checkFormat(n.cfg.DataDir); err != nil {
		return err
	}
	if n.storage, err = openStorage(filepath.Join(n.cfg.DataDir, "raft"), &n.cfg, n.report); err != nil {
		return err
	}
	n.storage.logs.stored = func(took time.Duration, bytes int) {
		n.timings.LogStore.Observe(took)
		n.disk.wrote(bytes)
	}
	// After the lock on the log: two processes must not both write it.
	if n.nodeFile, err = openNodeFile(n.cfg.DataDir, n.cfg.Identity.ClusterID(), n.cfg.Name); err != nil {
		return err
	}
	if n.nodeFile.recovering() {
		return fmt.Errorf("%w: run \"kontiki recover --data-dir %s\" again", ErrHalfRecovered, n.cfg.DataDir)
	}
	state, err := n.storage.hasState()
	n.hasState.Store(state)
	if err != nil {
		return err
	}
	n.foundings = n.nodeFile.foundings(n.cfg.Identity.ClusterID())
	return n.nodeFile.complete(state, n.cfg.NonVoter)
}

func (n *Node) openPort() (err error) {
	if n.listener, err = listen(&n.cfg); err != nil {
		return err
	}
	n.listener.serve, n.listener.lost, n.listener.founding = n.servePeer, n.lostConn, n.foundings
	n.roster.founding = n.foundings
	n.peers = &peers{
		limit: n.cfg.MaxCommandBytes + frameSlack,
		wait:  n.cfg.DialTimeout,
		links: make(map[linkKey]*link),
	}
	n.peers.dial = n.dialPeer
	return nil
}

func (n *Node) openRaft() (err error) {
	n.transport = newTransport(n)
	// A node with data takes part at once, as does one that has promised to found a cluster
	// and crashed before it had data. Any other must show first that it has lost none.
	n.transport.admitted.Store(n.hasState.Load() || n.nodeFile.founders() != nil)
	if n.raft, err = n.newRaft(); err != nil {
		return fmt.Errorf("cannot start raft: %w", err)
	}
	observations := make(chan raft.Observation, 1)
	n.raft.RegisterObserver(observer(observations))
	n.started.Store(n.raft)
	n.transport.start(n.raft)
	n.wg.Go(func() { n.observeLoop(observations) })
	if server, ok := n.server(n.self); ok && server.Suffrage == raft.Voter && n.soleVoter() {
		n.standNow() // nobody else can be leader
	}
	if n.hasState.Load() || n.cfg.expect() != 1 {
		return nil
	}
	return n.foundAlone()
}

// newRaft runs raft.NewRaft on a goroutine of its own, because a failing store ends the
// goroutine that uses it.
func (n *Node) newRaft() (r *raft.Raft, err error) {
	err = ErrDisk
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = raft.NewRaft(n.raftConfig(), timedFSM{n.machine, &n.timings}, n.storage.cache, n.storage.logs, n.storage.snapshots, n.transport)
	}()
	<-done
	return r, err
}

func (n *Node) raftConfig() *raft.Config {
	return &raft.Config{
		ProtocolVersion:    raft.ProtocolVersionMax,
		LocalID:            n.self,
		HeartbeatTimeout:   n.cfg.HeartbeatTimeout,
		ElectionTimeout:    n.cfg.ElectionTimeout,
		LeaderLeaseTimeout: n.cfg.LeaseTimeout,
		CommitTimeout:      n.cfg.CommitTimeout,
		MaxAppendEntries:   n.cfg.MaxAppendEntries,
		BatchApplyCh:       true,
		ShutdownOnRemove:   true,
		TrailingLogs:       n.cfg.TrailingLogs,
		SnapshotInterval:   n.cfg.SnapshotInterval,
		SnapshotThreshold:  n.cfg.SnapshotThreshold,
		NoLegacyTelemetry:  true,
		Logger:             n.cfg.Logger.Named("raft"),
	}
}

// startLoops starts the goroutines that doc.go lists.
func (n *Node) startLoops() {
	n.listener.run()
	n.wg.Go(n.leadLoop)
	n.wg.Go(n.joinLoop)
	n.wg.Go(n.enterLoop)
	n.wg.Go(n.suspectLoop)
	n.wg.Go(n.catchUp)
	n.wg.Go(func() { n.disk.run(n.ctx) })
	n.wg.Go(n.rememberLoop)
}

// report passes the first fatal error to the process.
func (n *Node) report(err error) {
	select {
	case n.fatal <- err:
		n.logger.Error("this node cannot go on", "error", err)
	default:
	}
}

// Fatal delivers the reason, one line, why this process has to exit. A supervisor's restart
// is the cure, except where the error says otherwise.
func (n *Node) Fatal() <-chan error { return n.fatal }

// PeerAddr returns what others dial for raft and forwarding.
func (n *Node) PeerAddr() string { return string(n.listener.advertise) }

// GossipAddr returns what others dial for gossip.
func (n *Node) GossipAddr() string { return n.gossipAddr }

// closeError keeps what went wrong while closing and is not simply the closing itself.
func closeError(errs ...error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return err == nil || errors.Is(err, raft.ErrRaftShutdown)
	})...)
}

func sortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}
