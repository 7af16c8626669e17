package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// maxForwardWait bounds how long a leader works on a forwarded command after its asker may
// have stopped waiting.
const maxForwardWait = 30 * time.Second

// verdict is what is known of one attempt to have a command committed.
type verdict uint8

const (
	committed verdict = iota // the result is known
	notLeader                // surely not proposed: ask another node
	refused                  // surely not proposed: ask again
	unknown                  // may have been proposed
	tooLarge                 // surely not proposed, and never will be
	invalid                  // likewise
	diskFull                 // surely not proposed, and not before the leader's disk has space
)

// settled is what became of a command handed to raft.
type settled struct {
	result fsm.Result
	err    error
}

// admit is apply, if this node's disk takes the command, or if it makes room.
func (n *Node) admit(ctx context.Context, data []byte, room bool) (fsm.Result, verdict) {
	if !room && !n.disk.admitsEncoded(data) {
		return fsm.Result{}, diskFull
	}
	return n.apply(ctx, data)
}

// apply hands an encoded command to raft on this node. It must not be changed afterwards:
// the log and the FSM keep it.
func (n *Node) apply(ctx context.Context, data []byte) (fsm.Result, verdict) {
	if len(data) > n.cfg.MaxCommandBytes {
		return fsm.Result{}, tooLarge
	}
	if n.raft.State() != raft.Leader {
		return fsm.Result{}, notLeader
	}
	// Raft bounds what it queues and sends by number of entries, not by bytes.
	if n.inflight.acquire(ctx, len(data)) != nil {
		return fsm.Result{}, refused
	}
	done := make(chan settled, 1)
	future := n.raft.Apply(data, n.cfg.EnqueueTimeout)
	go func() {
		done <- settle(future)
		n.inflight.release(len(data))
	}()
	select {
	case s := <-done:
		return s.result, n.judge(s.err)
	case <-ctx.Done():
	case <-n.ctx.Done():
		// Raft never answers for what it had queued when it was shut down.
	}
	return fsm.Result{}, unknown
}

func settle(future raft.ApplyFuture) settled {
	if err := future.Error(); err != nil {
		return settled{err: err}
	}
	result, ok := future.Response().(fsm.Result)
	if !ok {
		panic(fmt.Sprintf("cluster: the FSM answered a command with %T", future.Response()))
	}
	return settled{result: result}
}

// judge says what an error of raft.Apply means for the command.
func (n *Node) judge(err error) verdict {
	switch {
	case err == nil:
		n.transfer.clear()
		n.noteApplied()
		return committed
	case errors.Is(err, raft.ErrNotLeader):
		n.transfer.clear()
		return notLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return refused
	case errors.Is(err, raft.ErrLeadershipTransferInProgress):
		n.noteTransfer()
		return refused
	}
	// ErrLeadershipLost, ErrAbortedByRestore, ErrRaftShutdown, a failed disk: it may be in
	// the log, and the next leader may commit it.
	return unknown
}

// noteTransfer notes that raft has refused something because of a transfer.
func (n *Node) noteTransfer() {
	if n.transfer.overdue(n.transferLimit()) {
		n.report(ErrStuckTransfer)
	}
}

// transferLimit is well above what raft itself allows a transfer, one ElectionTimeout.
func (n *Node) transferLimit() time.Duration { return max(4*n.cfg.ElectionTimeout, time.Second) }

// transferWatch is the watchdog for hashicorp/raft#696: a leader whose transfer raced with a
// step-down refuses every command from then on, and only a restart helps.
type transferWatch struct {
	since atomic.Int64 // UnixNano of the first refusal in a row; 0 is none
}

func (w *transferWatch) clear() {
	if w.since.Load() != 0 {
		w.since.Store(0)
	}
}

// overdue notes a refusal and says whether they have gone on for longer than limit.
func (w *transferWatch) overdue(limit time.Duration) bool {
	now := time.Now().UnixNano()
	if w.since.CompareAndSwap(0, now) {
		return false
	}
	return now-w.since.Load() > int64(limit)
}
