package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// shared lets many callers share one answer. A caller joins the next question that is
// asked, never one already on its way: an answer may be older than a question that was
// asked before the caller came, and then it could miss what the caller has seen.
type shared struct {
	ask func() (uint64, error) // bounds its own time

	mu      sync.Mutex
	next    *round // guarded by mu; the question that callers join
	running bool   // guarded by mu
}

type round struct {
	done  chan struct{}
	index uint64
	err   error
}

func (s *shared) join(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
	}
	r := s.next
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.index, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// run asks until nobody has joined the next question.
func (s *shared) run() {
	for {
		s.mu.Lock()
		r := s.next
		s.next = nil
		s.running = r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		r.index, r.err = s.ask()
		close(r.done)
	}
}

// ReadIndex returns an index that makes a read linearizable: whoever waits until this node
// has applied it sees every command that was acknowledged, on any node, before ReadIndex
// was called.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	pause := backoff{next: firstPause, limit: longPause}
	start := time.Now()
	defer n.timings.ReadIndex.since(start)
	for {
		changed := n.changed.C()
		index, err := n.askIndex(ctx)
		if err == nil {
			return index, nil
		}
		if n.ctx.Err() != nil {
			return 0, ErrClosed
		}
		if time.Since(start) > n.cfg.RetryFor {
			return 0, fmt.Errorf("%w: gave up after %s", err, n.cfg.RetryFor)
		}
		if waitErr := pause.wait(ctx, changed); waitErr != nil {
			return 0, fmt.Errorf("%w: %w", err, waitErr)
		}
	}
}

// askIndex asks once: this node, if it leads, else the leader.
func (n *Node) askIndex(ctx context.Context) (uint64, error) {
	switch leader := n.leaderID(); {
	case n.ctx.Err() != nil:
		return 0, ErrClosed
	case leader == "":
		return 0, ErrNoLeader
	case leader == n.self:
		return n.confirmed.join(ctx)
	}
	return n.asked.join(ctx)
}

// Ready returns nil once this node has applied everything that was committed when it was
// asked. After a start that takes a leader: what is in the log may not be committed. A node
// that was ready once has caught up (see CaughtUp).
func (n *Node) Ready(ctx context.Context) error {
	index, err := n.ReadIndex(ctx)
	if err != nil {
		return err
	}
	if err := n.machine.WaitIndex(ctx, index); err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	n.markCaughtUp()
	return nil
}

// catchUp ends once this node, after its start, has applied what was committed then. Raft
// restores the snapshot alone and applies the log only when it has heard a leader, so before
// that the node may be older than what it served in an earlier life.
func (n *Node) catchUp() {
	pause := backoff{next: firstPause, limit: longPause}
	for n.Ready(n.ctx) != nil {
		if pause.wait(n.ctx, nil) != nil {
			return
		}
	}
}

// CaughtUp is closed once this node has, at any time since its start, applied everything that
// was committed then: from then on it never goes back. Without a quorum that may never be.
func (n *Node) CaughtUp() <-chan struct{} { return n.firstCatchUp }

// askLeader is a follower's question to the leader, for all its readers.
func (n *Node) askLeader() (uint64, error) {
	ctx, cancel := context.WithTimeout(n.ctx, 2*n.cfg.VerifyTimeout)
	defer cancel()
	leader := n.leaderID()
	if leader == "" {
		return 0, ErrNoLeader
	}
	if leader == n.self {
		return n.confirmed.join(ctx)
	}
	reply, v := n.forward(ctx, leader, laneControl, askRead, n.testimony())
	switch {
	case v == committed && len(reply) == 8:
		return binary.BigEndian.Uint64(reply), nil
	case v == notLeader:
		return 0, ErrNoLeader
	}
	return 0, ErrNoQuorum
}

// testimony goes with a question to the leader: the answer that this node would give to the
// question that the leader is about to ask (see answerTerm).
func (n *Node) testimony() []byte {
	if !n.transport.admitted.Load() {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, n.raft.CurrentTerm())
}

// attestedIndex is confirmIndex if this node and the asker are a majority: of three voters,
// the asker's word is all that the leader needs. It was given after the asker's readers came.
func (n *Node) attestedIndex(asker string, testimony []byte) (index uint64, ok bool) {
	p := n.presiding()
	if p == nil || len(testimony) != 8 || binary.BigEndian.Uint64(testimony) != p.term {
		return 0, false
	}
	index = n.machine.Index()
	voters, needed := n.otherVoters()
	if slices.ContainsFunc(voters, func(s raft.Server) bool { return s.ID == raft.ServerID(asker) }) {
		needed--
	}
	return index, needed <= 0 && n.leadsIn(p.term)
}

// confirmIndex is the leader's answer. Its FSM has every command that was acknowledged
// before, because a leader acknowledges what it has applied, and because of the barrier
// that it applied when it won. What is left to prove is that no other node has won since:
// after the index was taken, and in the same term as the barrier.
//
// Raft's own indexes would not do: its commit index may name an entry that no FSM sees, its
// applied index runs ahead of the FSM.
func (n *Node) confirmIndex() (uint64, error) {
	p := n.presiding()
	if p == nil {
		return 0, ErrNoLeader
	}
	index := n.machine.Index()
	if err := n.confirmTerm(p.term); err != nil {
		return 0, err
	}
	return index, nil
}
