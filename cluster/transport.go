package cluster

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

const (
	// peerPool is how many idle raft connections to one peer are kept.
	peerPool = 4

	// noPipeline: with more than one append in flight, a refused one ends the goroutine that
	// takes the answers, while the one that sends waits for it and for nothing else. The
	// follower then gets heartbeats and no entries, and Shutdown never returns. Batches make
	// up for it: on loopback this was as fast for one writer and a third faster for 256.
	noPipeline = 1

	// queuedRPCs bounds what waits for raft's main goroutine. Each is a peer's connection
	// that waits too, so that the bound is more than a cluster has.
	queuedRPCs = 64

	// stuckInstalls is how many snapshots may be installed in a row with not one entry
	// appended in between.
	stuckInstalls = 3
)

var errNotAdmitted = errors.New("this node does not take part in raft yet")

// transport is raft's network transport with a gate for what comes in.
//
// No fast path for heartbeats (hashicorp/raft#695): raft's transport would run a heartbeat
// on the connection's goroutine, where it changes state and term while the main goroutine
// uses them; nodes have diverged that way. SetHeartbeatHandler does nothing here, so that
// heartbeats queue for the main goroutine like everything else.
//
// The one place where that hurts is the install of a snapshot, which holds the main
// goroutine for as long as it takes: the leader would miss this follower's answers, and with
// a third node down it would resign. So the gate itself answers heartbeats of the leader
// that is installing, as long as the install is going on and the term is that leader's:
// then the main goroutine can be nowhere else, and would say the same.
//
// The concrete type is embedded, not the interface, because raft finds pre-vote and Close
// by type assertion.
type transport struct {
	*raft.NetworkTransport
	header raft.RPCHeader  // of what this node says
	in     <-chan raft.RPC // from the network
	out    chan raft.RPC   // what raft's main goroutine takes
	done   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once

	injected chan raft.WithRPCHeader // from this node itself: see commit.go, suspect.go

	raft   *raft.Raft    // set before run
	logs   raft.LogStore // raft's, to read
	stores func() uint64
	report func(error)

	// admitted is false until this node is known not to be a voter that lost its data.
	admitted atomic.Bool

	// All below belong to the goroutine run.
	queue      []raft.RPC
	mark       *raft.AppendEntriesRequest // injected, and waiting for its entry
	newest     uint64                     // entry that was queued
	installing *install
	installs   int    // in a row without an append
	lastStores uint64 // when the last install ended
}

// install is a snapshot that raft is installing.
type install struct {
	request *raft.InstallSnapshotRequest
	respond chan<- raft.RPCResponse // the sender's
	done    chan raft.RPCResponse   // raft's
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

func newTransport(n *Node) *transport {
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: addressBook{n},
		Stream:                n.listener,
		MaxPool:               peerPool,
		MaxRPCsInFlight:       noPipeline,
		Timeout:               n.cfg.PeerTimeout,
		Logger:                n.logger.Named("raft-net"),
	})
	return &transport{
		NetworkTransport: network,
		header:           raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.self), Addr: []byte(n.listener.advertise)},
		in:               network.Consumer(),
		out:              make(chan raft.RPC),
		injected:         make(chan raft.WithRPCHeader, 1),
		done:             make(chan struct{}),
		logs:             n.storage.cache,
		stores:           n.storage.logs.stores.Load,
		report:           n.report,
	}
}

// addressBook tells raft's transport where a node is: gossip knows a new address before the
// raft configuration does.
type addressBook struct{ node *Node }

// ServerAddr implements raft.ServerAddressProvider.
func (b addressBook) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	addr, ok := b.node.peerAddrOf(id)
	if !ok {
		return "", errors.New("unknown node")
	}
	return dialAddr(id, addr), nil
}

// SetHeartbeatHandler implements raft.Transport, on purpose by doing nothing.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.out }

// EncodePeer implements raft.Transport: the plain address, without addressBook's name.
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// Close implements raft.WithClose.
func (t *transport) Close() error {
	t.once.Do(func() { close(t.done) })
	err := t.NetworkTransport.Close()
	t.wg.Wait()
	return err
}

// start passes RPCs on to r.
func (t *transport) start(r *raft.Raft) {
	t.raft = r
	t.wg.Go(t.run)
}

// inject gives raft a message that did not come over the network, unless one is waiting.
func (t *transport) inject(request raft.WithRPCHeader) {
	select {
	case t.injected <- request:
	default:
	}
}

func (t *transport) takeInjected(request raft.WithRPCHeader) {
	if mark, ok := request.(*raft.AppendEntriesRequest); ok {
		t.mark = mark
		t.queueMark(t.raft.LastIndex())
		return
	}
	t.queueOwn(request)
}

// queueOwn queues a message to whose response nobody listens.
func (t *transport) queueOwn(request raft.WithRPCHeader) {
	t.queue = append(t.queue, raft.RPC{Command: request, RespChan: make(chan raft.RPCResponse, 1)})
}

func (t *transport) run() {
	for {
		var in <-chan raft.RPC
		var injected <-chan raft.WithRPCHeader
		if len(t.queue) < queuedRPCs {
			in, injected = t.in, t.injected
		}
		var out chan raft.RPC
		var head raft.RPC
		if len(t.queue) > 0 {
			out, head = t.out, t.queue[0]
		}
		var installed chan raft.RPCResponse
		if t.installing != nil {
			installed = t.installing.done
		}
		select {
		case rpc := <-in:
			if !t.answer(rpc) {
				t.queue = append(t.queue, rpc)
				t.queueMark(lastEntry(rpc))
			}
		case request := <-injected:
			t.takeInjected(request)
		case out <- head:
			copy(t.queue, t.queue[1:])
			t.queue[len(t.queue)-1] = raft.RPC{}
			t.queue = t.queue[:len(t.queue)-1]
		case response := <-installed:
			t.installEnded(response)
		case <-t.done:
			return
		}
	}
}

// answer deals with what raft shall not see, and says so. An install that raft shall see
// gets its response through here.
func (t *transport) answer(rpc raft.RPC) bool {
	if !t.admitted.Load() {
		rpc.Respond(nil, errNotAdmitted)
		return true
	}
	switch request := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if t.answerHeartbeat(rpc, request) {
			return true
		}
		t.fit(request)
	case *raft.InstallSnapshotRequest:
		return t.answerInstall(rpc, request)
	}
	return false
}

func (t *transport) answerHeartbeat(rpc raft.RPC, request *raft.AppendEntriesRequest) bool {
	heartbeat := len(request.Entries) == 0 && request.PrevLogEntry == 0 && request.LeaderCommitIndex == 0
	if t.installing == nil || !heartbeat || len(t.installing.done) > 0 {
		return false
	}
	from := t.installing.request
	if request.Term != from.Term || request.Term != t.raft.CurrentTerm() || string(request.ID) != string(from.ID) {
		return false
	}
	rpc.Respond(&raft.AppendEntriesResponse{
		RPCHeader: t.header,
		Term:      request.Term,
		LastLog:   t.raft.LastIndex(),
		Success:   true,
	}, nil)
	return true
}

// answerInstall keeps raft from going back: a snapshot that arrives late, after what it
// holds was applied, would reset the FSM to it and delete the log after it, entries
// included that this node has acknowledged. The sender is told the truth, that this node
// has that much; fit has raft take what follows. Raft learns a newer term from that.
func (t *transport) answerInstall(rpc raft.RPC, request *raft.InstallSnapshotRequest) bool {
	current := t.raft.CurrentTerm()
	if t.installing == nil && request.Term >= current && request.LastLogIndex <= t.raft.AppliedIndex() {
		t.countInstall()
		go func() {
			io.Copy(io.Discard, rpc.Reader) // the sender waits until all is read
			rpc.Respond(&raft.InstallSnapshotResponse{Term: current, Success: true}, nil)
		}()
		return true
	}
	if t.installing != nil {
		// Raft installs one at a time; let the second sender try again.
		rpc.Respond(nil, errors.New("a snapshot is being installed"))
		return true
	}
	t.installing = &install{request: request, respond: rpc.RespChan, done: make(chan raft.RPCResponse, 1)}
	rpc.RespChan = t.installing.done
	t.queue = append(t.queue, rpc)
	return true
}

// queueMark puts the injected append behind the entries up to upTo, if it is about one of them.
func (t *transport) queueMark(upTo uint64) {
	t.newest = max(t.newest, upTo)
	if t.mark != nil && t.mark.PrevLogEntry <= t.newest {
		t.queueOwn(t.mark)
		t.mark = nil
	}
}

func lastEntry(rpc raft.RPC) uint64 {
	if request, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && len(request.Entries) > 0 {
		return request.Entries[len(request.Entries)-1].Index
	}
	return 0
}

func (t *transport) installEnded(response raft.RPCResponse) {
	t.installing.respond <- response // has room for it
	t.installing = nil
	if r, ok := response.Response.(*raft.InstallSnapshotResponse); ok && r.Success {
		t.countInstall()
	}
}

// countInstall is the watchdog for hashicorp/raft#697. A restart, with the log deleted by
// the last install, is the way out.
func (t *transport) countInstall() {
	if stores := t.stores(); stores != t.lastStores {
		t.lastStores, t.installs = stores, 0
	}
	if t.installs++; t.installs >= stuckInstalls {
		t.report(ErrStuckInstall)
	}
}
