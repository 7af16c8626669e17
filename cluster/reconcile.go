package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// reconcileLoop brings the raft configuration in line with the members there are. Gossip
// proposes, the leader disposes: it asks each of them over TCP before it adds, moves or
// promotes it, and before it takes it for dead (see autopilot). One change at a time.
func (n *Node) reconcileLoop(ctx context.Context) {
	pilot := newAutopilot()
	for {
		changed := n.members.C()
		pending := n.reconcile(ctx, pilot)
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
func (n *Node) reconcile(ctx context.Context, pilot *autopilot) (pending bool) {
	// A person's change waits, and is seen by the questions below.
	if n.changing.acquire(ctx, 1) != nil {
		return false
	}
	defer n.changing.release(1)
	members := n.roster.list()
	states := n.askMembers(ctx, n.cfg.VerifyTimeout, n.peerAddrs(members))
	for _, m := range members {
		if !m.alive || m.peerAddr == "" || ctx.Err() != nil {
			continue
		}
		state, answered := states[m.name]
		if !answered {
			// It may be starting, or may not be what it says.
			_, known := n.server(raft.ServerID(m.name))
			pending = pending || !known
			continue
		}
		waiting, err := n.reconcileMember(ctx, pilot, m, state)
		if err != nil && ctx.Err() == nil {
			n.logger.Warn("cannot change the configuration", "name", m.name, "error", err)
		}
		pending = pending || waiting || err != nil
	}
	if err := n.removeDead(ctx, pilot, states); err != nil && ctx.Err() == nil {
		n.logger.Warn("cannot remove a dead node", "error", err)
	}
	return pending
}

// peerAddrs is where to ask these members and all nodes of the configuration.
func (n *Node) peerAddrs(members []member) map[string]string {
	addrs := make(map[string]string)
	for _, server := range n.servers() {
		addrs[string(server.ID)] = string(server.Address)
	}
	for _, m := range members {
		if m.peerAddr != "" {
			addrs[m.name] = m.peerAddr
		}
	}
	return addrs
}

func (n *Node) reconcileMember(ctx context.Context, pilot *autopilot, m member, state memberState) (pending bool, err error) {
	id, addr := raft.ServerID(m.name), raft.ServerAddress(m.peerAddr)
	server, known := n.server(id)
	if other, taken := n.serverAt(addr); taken && other != id && (!known || server.Address != addr) {
		n.logger.Warn("a node has the address of another one: if its machine replaces that one, run kontiki members remove", "name", m.name, "addr", addr, "remove", other)
		return false, nil
	}
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
	case server.Suffrage == raft.Voter || state.nonVoter || m.nonVoter:
		return false, nil
	case !pilot.stable(m.name, n.caughtUp(state), time.Now(), n.cfg.StableFor):
		return true, nil
	}
	n.logger.Info("a node has caught up and may vote", "name", m.name)
	return false, n.configure(ctx, n.raft.AddVoter, id, addr)
}

// caughtUp says whether a node has applied almost all. A voter that is far behind would
// count towards the majority and hold up every commit that needs it.
func (n *Node) caughtUp(state memberState) bool {
	return state.hasState && state.applied+n.cfg.PromoteLag >= n.machine.Index()
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

// serverAt returns which node the configuration has at addr.
func (n *Node) serverAt(addr raft.ServerAddress) (raft.ServerID, bool) {
	for _, server := range n.servers() {
		if server.Address == addr {
			return server.ID, true
		}
	}
	return "", false
}
