package cluster

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// TestTransportKeepsWhatRaftLooksFor: pre-vote, Close and IsMonotonic are found by type
// assertion, the last through the log cache.
func TestTransportKeepsWhatRaftLooksFor(t *testing.T) {
	var trans raft.Transport = new(transport)
	if _, ok := trans.(raft.WithPreVote); !ok {
		t.Error("raft would disable pre-vote")
	}
	if _, ok := trans.(raft.WithClose); !ok {
		t.Error("raft would not close the transport")
	}
	s, _ := testStorage(t, t.TempDir(), nil)
	var store raft.LogStore = s.cache
	if m, ok := store.(raft.MonotonicLogStore); !ok || !m.IsMonotonic() {
		t.Error("raft would keep the old log when it installs a snapshot")
	}
}

// TestHeartbeatsGoToTheMainGoroutine: raft's own handler is never installed.
func TestHeartbeatsGoToTheMainGoroutine(t *testing.T) {
	g := newGate(t, nil)
	g.trans.SetHeartbeatHandler(func(raft.RPC) { t.Error("a heartbeat took the fast path") })
	heartbeat := &raft.AppendEntriesRequest{Term: 1, RPCHeader: raft.RPCHeader{Addr: []byte("x")}}
	g.send(heartbeat)
	if got := <-g.trans.out; got.Command != heartbeat {
		t.Errorf("raft got %v", got.Command)
	}
}

// TestGateKeepsOutsidersOut: a node that may have lost its vote takes no part.
func TestGateKeepsOutsidersOut(t *testing.T) {
	g := newGate(t, nil)
	g.trans.admitted.Store(false)
	if r := <-g.send(&raft.RequestVoteRequest{Term: 1}); !errors.Is(r.Error, errNotAdmitted) {
		t.Errorf("a vote was answered with %v", r)
	}
}

// TestLateInstallDoesNotGoBack: a snapshot of what is applied is acknowledged, not installed.
func TestLateInstallDoesNotGoBack(t *testing.T) {
	f := newFollower(t, t.TempDir(), true)
	f.append(t, 2, 2, 30, 30)
	g := newGate(t, f.raft)
	for i := range stuckInstalls {
		response := <-g.send(&raft.InstallSnapshotRequest{Term: f.raft.CurrentTerm(), LastLogIndex: 20})
		if r, ok := response.Response.(*raft.InstallSnapshotResponse); !ok || !r.Success {
			t.Fatalf("install %d: %+v", i, response)
		}
	}
	if err := <-g.reports; !errors.Is(err, ErrStuckInstall) {
		t.Errorf("%d installs without progress: %v", stuckInstalls, err)
	}
}

// TestAppendAfterInstall: a follower that has a snapshot and no log takes what a leader sends whose
// own snapshot is older, and takes twice what comes after its snapshot.
func TestAppendAfterInstall(t *testing.T) {
	f := newFollower(t, t.TempDir(), true)
	f.install(t, 5, 30, 4)
	g := newGate(t, f.raft)
	g.trans.logs = f.storage.cache
	for _, sent := range []struct{ previous, last uint64 }{{20, 25}, {20, 35}, {30, 35}, {25, 40}} {
		request := appendOf(4, sent.previous+1, sent.last)
		request.Term, request.LeaderCommitIndex = 6, sent.last
		if !g.append(f, request) {
			t.Errorf("entries %d to %d were refused", sent.previous+1, sent.last)
		}
		if f.raft.LastIndex() != max(30, sent.last) || f.raft.CommitIndex() != sent.last {
			t.Errorf("after entries to %d the log ends at %d and is committed to %d", sent.last, f.raft.LastIndex(), f.raft.CommitIndex())
		}
	}
}

// TestCommitWhatWasSent: a leader that sends old entries says nothing of those after them, which
// may be another's.
func TestCommitWhatWasSent(t *testing.T) {
	f := newFollower(t, t.TempDir(), true)
	f.append(t, 2, 2, 30, 10)
	g := newGate(t, f.raft)
	g.trans.logs = f.storage.cache
	request := appendOf(2, 11, 20)
	request.Term, request.LeaderCommitIndex = 5, 40
	if !g.append(f, request) || f.raft.CommitIndex() != 20 {
		t.Errorf("of entries 11 to 20 the follower commits up to %d", f.raft.CommitIndex())
	}
}

// TestHeartbeatsDuringInstall: the gate answers for the main goroutine while that installs.
func TestHeartbeatsDuringInstall(t *testing.T) {
	f := newFollower(t, t.TempDir(), true)
	f.append(t, 2, 2, 10, 10)
	g := newGate(t, f.raft)
	term := f.raft.CurrentTerm()
	installed := g.send(&raft.InstallSnapshotRequest{RPCHeader: raft.RPCHeader{ID: []byte("L")}, Term: term, LastLogIndex: 100})
	install := <-g.trans.out // and now raft is busy with it
	beat := func(id string, term uint64) chan raft.RPCResponse {
		return g.send(&raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte(id)}, Term: term})
	}
	if r := (<-beat("L", term)).Response.(*raft.AppendEntriesResponse); !r.Success || r.Term != term {
		t.Errorf("the installing leader's heartbeat: %+v", r)
	}
	later := beat("L", term+1) // not ours to answer
	install.Respond(&raft.InstallSnapshotResponse{Term: term, Success: true}, nil)
	<-installed
	if got := <-g.trans.out; got.Command.(*raft.AppendEntriesRequest).Term != term+1 || len(later) > 0 {
		t.Errorf("a heartbeat of a later term did not reach raft")
	}
	beat("L", term)
	<-g.trans.out // the install is over: raft answers itself again
}

// gate is a transport whose network is the test.
type gate struct {
	trans   *transport
	network chan raft.RPC
	reports chan error
}

func newGate(t *testing.T, r *raft.Raft) *gate {
	g := &gate{network: make(chan raft.RPC), reports: make(chan error, 10)}
	g.trans = &transport{
		NetworkTransport: new(raft.NetworkTransport),
		in:               g.network,
		out:              make(chan raft.RPC),
		injected:         make(chan raft.WithRPCHeader, 1),
		done:             make(chan struct{}),
		stores:           func() uint64 { return 1 },
		report:           func(err error) { g.reports <- err },
	}
	g.trans.admitted.Store(true)
	g.trans.start(r)
	t.Cleanup(func() { close(g.trans.done); g.trans.wg.Wait() })
	return g
}

func (g *gate) send(command any) chan raft.RPCResponse {
	responses := make(chan raft.RPCResponse, 1)
	g.network <- raft.RPC{Command: command, RespChan: responses, Reader: bytes.NewReader(nil)}
	return responses
}

// append sends an append through the gate to f, and says whether f took it.
func (g *gate) append(f *follower, request *raft.AppendEntriesRequest) bool {
	g.send(request)
	var response raft.AppendEntriesResponse
	err := f.leader.AppendEntries("me", "me", (<-g.trans.out).Command.(*raft.AppendEntriesRequest), &response)
	return err == nil && response.Success
}

// TestDivergedFollowerHealsByRestart is hashicorp/raft#697: a follower whose log differs
// from the leader's before the snapshot refuses what comes after it. With the log deleted
// by the install, a restart is enough; without, it is not.
func TestDivergedFollowerHealsByRestart(t *testing.T) {
	for _, monotonic := range []bool{true, false} {
		dir := t.TempDir()
		f := newFollower(t, dir, monotonic)
		f.append(t, 2, 2, 50, 0) // of a leader whose entries never got committed
		f.install(t, 5, 30, 4)
		if f.tryAppend(5, 30, 4) {
			t.Fatal("raft was fixed: take the watchdog and IsMonotonic out")
		}
		f.stop()
		f = newFollower(t, dir, monotonic)
		if got := f.tryAppend(5, 30, 4); got != monotonic {
			t.Errorf("monotonic %v: after a restart the follower takes entries: %v", monotonic, got)
		}
		f.stop()
	}
}

// follower is a raft of this package's stores, led by the test.
type follower struct {
	raft    *raft.Raft
	storage *storage
	leader  *raft.InmemTransport
}

type gappy struct{ raft.LogStore } // hides IsMonotonic

func newFollower(t *testing.T, dir string, monotonic bool) *follower {
	t.Helper()
	cfg := DefaultConfig()
	store, err := openStorage(dir, &cfg, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	addr, trans := raft.NewInmemTransport("me")
	_, leader := raft.NewInmemTransport("L")
	leader.Connect(addr, trans)
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "me", hclog.NewNullLogger()
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Minute, time.Minute
	var logs raft.LogStore = store.cache
	if !monotonic {
		logs = gappy{store.cache}
	}
	raft.BootstrapCluster(conf, logs, store.logs, store.snapshots, trans, raft.Configuration{Servers: []raft.Server{
		{ID: "me", Address: "me"}, {ID: "L", Address: "L"}, {ID: "X", Address: "X"},
	}}) // refuses the second time, as it should
	r, err := raft.NewRaft(conf, fsm.New(), logs, store.logs, store.snapshots, trans)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{raft: r, storage: store, leader: leader}
	t.Cleanup(f.stop)
	return f
}

func (f *follower) stop() {
	f.raft.Shutdown().Error()
	f.storage.close()
}

func header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("L"), Addr: []byte("L")}
}

// appendOf is an append of no-ops of one term, and after one of that term.
func appendOf(term, first, last uint64) *raft.AppendEntriesRequest {
	request := &raft.AppendEntriesRequest{RPCHeader: header(), Term: term, PrevLogEntry: first - 1, PrevLogTerm: term}
	for i := first; i <= last; i++ {
		request.Entries = append(request.Entries, &raft.Log{Index: i, Term: term, Type: raft.LogNoop})
	}
	return request
}

// append has the follower store no-ops first to last of term, after entry 1 of term 1.
func (f *follower) append(t *testing.T, term, first, last, commit uint64) {
	t.Helper()
	request := appendOf(term, first, last)
	request.PrevLogTerm, request.LeaderCommitIndex = 1, commit
	var response raft.AppendEntriesResponse
	if err := f.leader.AppendEntries("me", "me", request, &response); err != nil || !response.Success {
		t.Fatalf("%+v, %v", response, err)
	}
}

// tryAppend offers one entry after prev.
func (f *follower) tryAppend(term, prev, prevTerm uint64) bool {
	request := &raft.AppendEntriesRequest{RPCHeader: header(), Term: term, PrevLogEntry: prev, PrevLogTerm: prevTerm,
		Entries: []*raft.Log{{Index: prev + 1, Term: term, Type: raft.LogNoop}}}
	var response raft.AppendEntriesResponse
	err := f.leader.AppendEntries("me", "me", request, &response)
	return err == nil && response.Success
}

func (f *follower) install(t *testing.T, term, index, indexTerm uint64) {
	t.Helper()
	var state bytes.Buffer
	if err := fsm.New().View().WriteSnapshot(&state); err != nil {
		t.Fatal(err)
	}
	request := &raft.InstallSnapshotRequest{
		RPCHeader: header(), SnapshotVersion: 1, Term: term, LastLogIndex: index, LastLogTerm: indexTerm,
		Configuration:      raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "me", Address: "me"}, {ID: "L", Address: "L"}}}),
		ConfigurationIndex: 1, Size: int64(state.Len()),
	}
	var response raft.InstallSnapshotResponse
	if err := f.leader.InstallSnapshot("me", "me", request, &response, io.Reader(&state)); err != nil || !response.Success {
		t.Fatalf("%+v, %v", response, err)
	}
}
