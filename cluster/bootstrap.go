package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// How a node with no data enters a cluster. All of this is over before raft lets the node
// take part, and none of it happens to a node that has data.
//
//	another member has data -> ask all of them: do you count me as a voter?
//	     yes -> this node has lost its data, it could vote twice in a term: stop
//	     no  -> take part; the leader will add this node
//	nobody has data, and as many new nodes as expected are there ->
//	     the first of them by name asks the others to found a cluster with exactly these;
//	     each promises that to one set only, on disk; when all have, the first one writes
//	     the configuration, and raft does the rest
const (
	agreed    byte = 0
	disagreed byte = 1
	hasData   byte = 2

	opAgree   byte = 0
	opRelease byte = 1
)

// enterLoop runs until this node takes part in raft.
func (n *Node) enterLoop() {
	if n.hasState.Load() {
		return
	}
	pause := backoff{next: 50 * time.Millisecond, limit: time.Second}
	for !n.hasState.Load() {
		changed := n.members.C()
		ctx, cancel := context.WithTimeout(n.ctx, n.cfg.RetryFor)
		n.enter(ctx)
		cancel()
		if pause.wait(n.ctx, changed) != nil {
			return
		}
		if n.raft.LastIndex() > 0 {
			n.hasState.Store(true)
		}
	}
	n.tellGossip(n.ctx)
}

// enter takes one step, if the members that gossip shows allow one.
func (n *Node) enter(ctx context.Context) {
	var withData, fresh []member
	for _, m := range n.roster.list() {
		switch {
		case !m.alive:
		case m.hasState && m.name != n.cfg.Name:
			withData = append(withData, m)
		case !m.hasState && !m.nonVoter && m.expect == n.cfg.expect():
			fresh = append(fresh, m)
		}
	}
	switch {
	case n.transport.admitted.Load() && n.nodeFile.founders() == nil:
		// Nothing left to do but to wait for the leader.
	case len(withData) > 0:
		n.enterExisting(ctx, withData)
	case n.cfg.expect() > 1 && len(fresh) == n.cfg.expect():
		n.found(ctx, foundersOf(fresh))
	case n.cfg.expect() > 1 && len(fresh) > n.cfg.expect():
		n.logger.Warn("more new nodes than expected: start the ones beyond bootstrap-expect later", "expect", n.cfg.expect(), "found", len(fresh))
	}
}

func foundersOf(members []member) founders {
	f := make(founders, 0, len(members))
	for _, m := range members {
		f = append(f, founder{Name: m.name, Addr: m.peerAddr})
	}
	return f.sorted()
}

// enterExisting asks every member that has data, because one that lags behind may not know
// yet whom the cluster counts.
func (n *Node) enterExisting(ctx context.Context, withData []member) {
	for _, m := range withData {
		reply, err := n.exchange(ctx, m.name, m.peerAddr, askStatus, nil)
		if err != nil {
			n.logger.Warn("a member does not answer", "name", m.name, "error", err)
			return
		}
		status, err := decodePeerStatus(reply.payload)
		if err != nil {
			n.logger.Error("a member's answer cannot be read", "name", m.name, "error", err)
			return
		}
		if status.suffrage == suffrageVoter && n.nodeFile.founders() == nil {
			n.report(fmt.Errorf("%w: the cluster knows %s as a voter, but %s is empty: remove %s from the cluster, then let this machine join under a new name", ErrWipedVoter, n.cfg.Name, n.cfg.DataDir, n.cfg.Name))
			return
		}
	}
	n.transport.admitted.Store(true)
}

// found is the work of the first founder.
func (n *Node) found(ctx context.Context, f founders) {
	if f[0].Name != n.cfg.Name {
		return
	}
	if promised, err := n.nodeFile.agree(f); err != nil || !promised {
		// An earlier promise stands in the way. It is this node's to take back only if it is
		// the first in it: another first one may have founded already.
		if old := n.nodeFile.founders(); len(old) > 0 && old[0].Name == n.cfg.Name {
			n.giveUpFounding(ctx, old)
		}
		return
	}
	for _, other := range f[1:] {
		if answer := n.askFounder(ctx, other, opAgree, f); answer != agreed {
			n.logger.Info("not all agree to found a cluster yet", "with", f.names(), "name", other.Name)
			n.giveUpFounding(ctx, f)
			return
		}
	}
	n.transport.admitted.Store(true)
	if err := n.bootstrap(f); err != nil {
		n.logger.Error("cannot found a cluster", "error", err)
	}
}

// giveUpFounding frees the others to agree to another set. This node must not found with
// this set afterwards, so it forgets it last, and asks anew the next time.
func (n *Node) giveUpFounding(ctx context.Context, f founders) {
	for _, other := range f {
		if other.Name != n.cfg.Name {
			n.askFounder(ctx, other, opRelease, f)
		}
	}
	if err := n.nodeFile.release(f); err != nil {
		n.logger.Error("cannot found a cluster", "error", err)
	}
}

func (n *Node) askFounder(ctx context.Context, other founder, op byte, f founders) byte {
	reply, err := n.exchange(ctx, other.Name, other.Addr, askAgree, f.append([]byte{op}))
	if err != nil || len(reply.payload) != 1 {
		return disagreed
	}
	return reply.payload[0]
}

// answerAgree is the work of the other founders.
func (n *Node) answerAgree(payload []byte) (kind, []byte) {
	if len(payload) == 0 {
		return replyInvalid, nil
	}
	f, err := decodeFounders(payload[1:])
	if err != nil || !slices.Contains(f.names(), n.cfg.Name) || len(f) != n.cfg.expect() {
		return replyInvalid, nil
	}
	switch {
	case n.hasState.Load():
		return replyOK, []byte{hasData}
	case payload[0] == opRelease:
		if err := n.nodeFile.release(f); err != nil {
			return replyRefused, nil
		}
		n.transport.admitted.Store(n.nodeFile.founders() != nil)
		return replyOK, []byte{agreed}
	}
	promised, err := n.nodeFile.agree(f)
	if err != nil || !promised {
		return replyOK, []byte{disagreed}
	}
	n.transport.admitted.Store(true)
	return replyOK, []byte{agreed}
}

// bootstrap writes the first configuration. Raft refuses if there is any state.
func (n *Node) bootstrap(f founders) error {
	var configuration raft.Configuration
	for _, one := range f {
		configuration.Servers = append(configuration.Servers, raft.Server{
			Suffrage: raft.Voter,
			ID:       raft.ServerID(one.Name),
			Address:  raft.ServerAddress(one.Addr),
		})
	}
	done := make(chan error, 1)
	go func() { done <- n.raft.BootstrapCluster(configuration).Error() }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-n.ctx.Done():
		return ErrClosed
	}
	n.hasState.Store(true)
	n.standNow() // nobody can be leader yet, so there is no silence to wait for
	n.logger.Info("founded a cluster", "id", n.cfg.Identity.ClusterID(), "with", f.names())
	return nil
}
