package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// reconcileLoop brings the raft configuration in line with the members that gossip shows.
// Gossip proposes, the leader disposes: it adds and moves nodes, one change at a time, and
// never removes one, as silence in gossip may be no more than a blocked UDP port.
func (n *Node) reconcileLoop(ctx context.Context) {
	for {
		changed := n.members.C()
		pending := n.reconcile(ctx)
		pause := backoff{next: n.cfg.ReconcileInterval}
		if pending {
			// Somebody is catching up.
			pause.next = max(n.cfg.ReconcileInterval/20, 10*time.Millisecond)
			changed = nil
		}
		pause.limit = pause.next
		if pause.wait(ctx, changed) != nil {
			return
		}
	}
}

// reconcile goes through all members once and says whether one is on its way to a vote.
func (n *Node) reconcile(ctx context.Context) (pending bool) {
	for _, m := range n.roster.list() {
		if !m.alive || m.peerAddr == "" || ctx.Err() != nil {
			continue
		}
		waiting, err := n.reconcileMember(ctx, m)
		if err != nil {
			n.logger.Warn("cannot change the configuration", "name", m.name, "error", err)
		}
		pending = pending || waiting || err != nil
	}
	return pending
}

func (n *Node) reconcileMember(ctx context.Context, m member) (pending bool, err error) {
	id, addr := raft.ServerID(m.name), raft.ServerAddress(m.peerAddr)
	server, known := n.server(id)
	switch {
	case !known:
		n.logger.Info("adding a node", "name", m.name, "addr", m.peerAddr)
		return true, n.configure(ctx, n.raft.AddNonvoter, id, addr)
	case server.Address != addr && server.Suffrage == raft.Voter:
		n.logger.Info("a node has moved", "name", m.name, "from", server.Address, "to", addr)
		return false, n.configure(ctx, n.raft.AddVoter, id, addr)
	case server.Address != addr:
		n.logger.Info("a node has moved", "name", m.name, "from", server.Address, "to", addr)
		return true, n.configure(ctx, n.raft.AddNonvoter, id, addr)
	case server.Suffrage == raft.Voter || m.nonVoter:
		return false, nil
	case !n.caughtUp(ctx, m):
		return true, nil
	}
	n.logger.Info("a node has caught up and may vote", "name", m.name)
	return false, n.configure(ctx, n.raft.AddVoter, id, addr)
}

// caughtUp says whether a member answers and has applied almost all. A voter that is far
// behind would count towards the majority and hold up every commit that needs it.
func (n *Node) caughtUp(ctx context.Context, m member) bool {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.VerifyTimeout)
	defer cancel()
	reply, err := n.exchange(ctx, m.name, m.peerAddr, askStatus, nil)
	if err != nil {
		return false
	}
	status, err := decodePeerStatus(reply.payload)
	return err == nil && status.hasState && status.applied+n.cfg.PromoteLag >= n.machine.Index()
}

type configChange func(raft.ServerID, raft.ServerAddress, uint64, time.Duration) raft.IndexFuture

// configure changes the configuration and waits until that is committed.
func (n *Node) configure(ctx context.Context, change configChange, id raft.ServerID, addr raft.ServerAddress) error {
	done := make(chan error, 1)
	go func() { done <- change(id, addr, 0, n.cfg.EnqueueTimeout).Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// servers is the latest raft configuration this node knows.
func (n *Node) servers() []raft.Server {
	future := n.raft.GetConfiguration() // from a copy; it does not wait for the main goroutine
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

func (n *Node) server(id raft.ServerID) (raft.Server, bool) {
	for _, server := range n.servers() {
		if server.ID == id {
			return server, true
		}
	}
	return raft.Server{}, false
}
