package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// slowResign is how long functions may take to return after their leadership ended before
// it is worth a line in the log: this node cannot lead anew until they have.
const slowResign = 10 * time.Second

// presidency is one term in which this node leads and has applied everything before it.
type presidency struct {
	term   uint64
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// presidencies is the list of functions to run, and the presidency to run them in.
type presidencies struct {
	mu        sync.Mutex
	functions []func(context.Context) // guarded by mu
	current   *presidency             // guarded by mu
}

// OnLeader has f run whenever this node leads: started, on a goroutine of its own, when the
// node has won and applied everything that was committed before; its ctx ends when the node
// no longer leads. F must then return: the node takes no second term before that.
func (n *Node) OnLeader(f func(context.Context)) {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	n.office.functions = append(n.office.functions, f)
	if p := n.office.current; p != nil {
		p.wg.Go(func() { f(p.ctx) })
	}
}

// presiding returns the current presidency or nil.
func (n *Node) presiding() *presidency {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	return n.office.current
}

// leadLoop is the leadership loop. LeaderCh holds only the latest change, so that "true"
// while this node presides means that it has lost and won again.
func (n *Node) leadLoop() {
	defer n.resign()
	for {
		select {
		case won := <-n.raft.LeaderCh():
			n.resign()
			if won {
				n.preside()
			}
		case <-n.ctx.Done():
			return
		}
	}
}

// preside waits until this node has applied what earlier leaders committed, and then
// starts the leader's functions.
func (n *Node) preside() {
	term := n.raft.CurrentTerm()
	if err := n.barrier(); err != nil {
		n.logger.Info("lost leadership before it began", "term", term, "error", err)
		return
	}
	if n.raft.State() != raft.Leader || n.raft.CurrentTerm() != term {
		return // the next change is in LeaderCh
	}
	ctx, cancel := context.WithCancel(n.ctx)
	p := &presidency{term: term, ctx: ctx, cancel: cancel}
	n.office.mu.Lock()
	n.office.current = p
	for _, f := range n.office.functions {
		p.wg.Go(func() { f(p.ctx) })
	}
	n.office.mu.Unlock()
	n.logger.Info("leading", "term", term)
	n.changed.Broadcast()
}

// barrier waits until everything before it is applied. As long as this node stays leader,
// refusals pass.
func (n *Node) barrier() error {
	pause := backoff{next: firstPause, limit: longPause}
	for {
		changed := n.changed.C()
		done := make(chan error, 1)
		go func() { done <- n.raft.Barrier(n.cfg.EnqueueTimeout).Error() }()
		select {
		case err := <-done:
			if err == nil || n.raft.State() != raft.Leader || errors.Is(err, raft.ErrLeadershipLost) {
				return err
			}
			if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
				n.noteTransfer() // nobody may ever propose anything to a leader that serves nobody
			}
		case <-n.ctx.Done():
			return ErrClosed
		}
		if err := pause.wait(n.ctx, changed); err != nil {
			return err
		}
	}
}

// resign ends the presidency, if there is one, and waits for its functions.
func (n *Node) resign() {
	n.office.mu.Lock()
	p := n.office.current
	n.office.current = nil
	n.office.mu.Unlock()
	if p == nil {
		return
	}
	p.cancel()
	n.changed.Broadcast()
	slow := time.AfterFunc(slowResign, func() {
		n.logger.Error("a leader's function does not return", "term", p.term)
	})
	defer slow.Stop()
	p.wg.Wait()
	n.logger.Info("no longer leading", "term", p.term)
}

// observeLoop turns raft's observations of state and leader into n.changed. Only that
// something changed counts, so that observations may be dropped while one is waiting.
func (n *Node) observeLoop(observations <-chan raft.Observation) {
	for {
		select {
		case <-observations:
			if leader := n.leaderID(); leader != "" {
				n.led.Store(&leader)
			}
			n.changed.Broadcast()
			n.checkShutdown()
		case <-n.ctx.Done():
			return
		}
	}
}

// checkShutdown notices that raft has shut itself down, as it does when its server is
// removed from the configuration.
func (n *Node) checkShutdown() {
	if n.raft.State() == raft.Shutdown && n.ctx.Err() == nil {
		n.report(ErrRemoved)
	}
}

func observer(ch chan raft.Observation) *raft.Observer {
	return raft.NewObserver(ch, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.RaftState, raft.LeaderObservation:
			return true
		}
		return false
	})
}
