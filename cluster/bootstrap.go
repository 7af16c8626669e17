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
//	     no  -> take the id of their founding and take part; the leader will add this node
//	nobody has data, and as many new nodes as expected are there ->
//	     the first of them by name asks the others to found a cluster with exactly these;
//	     each promises that to one set only, on disk, and keeps the id that the first one
//	     drew; when all have, the first one writes the configuration, and raft does the rest
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
		if n.raft.LastIndex() == 0 {
			continue
		}
		// Before others hear that it has data: they take data without a founding for older data.
		if err := n.nodeFile.settle(); err != nil {
			n.logger.Error("cannot note that this node belongs to a cluster", "error", err)
			continue
		}
		n.hasState.Store(true)
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
		case !m.hasState && !m.nonVoter && m.founding == "" && m.expect == n.cfg.expect():
			fresh = append(fresh, m)
		}
	}
	switch {
	case n.transport.admitted.Load() && n.nodeFile.founders() == nil:
		// Nothing left to do but to wait for the leader.
	case len(withData) > 0:
		n.enterExisting(ctx, withData)
	case n.nodeFile.settled() != "":
		// This node was on its way into a cluster, and waits for its members.
	case n.cfg.expect() > 1 && len(fresh) == n.cfg.expect():
		n.found(ctx, foundersOf(fresh))
	case n.cfg.expect() > 1 && len(fresh) > n.cfg.expect():
		n.logger.Warn("more new nodes than expected: start the ones beyond bootstrap-expect later", "expect", n.cfg.expect(), "found", len(fresh))
	case n.cfg.expect() > 1:
		n.tellWaiting(fresh)
	}
}

// tellWaiting says for whom this node waits, when that has changed.
func (n *Node) tellWaiting(fresh []member) {
	if found := foundersOf(fresh).names(); !slices.Equal(found, n.waitingWith) {
		n.waitingWith = found
		n.logger.Info("waiting for more new nodes that want to form a cluster of this size", "bootstrap-expect", n.cfg.expect(), "found", found)
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
	founding := n.nodeFile.founding()
	for _, m := range withData {
		state, err := n.askMember(ctx, m.name, m.peerAddr)
		if err != nil {
			n.logger.Warn("a member does not answer", "name", m.name, "error", err)
			return
		}
		if state.founding == "" {
			return // it is founding its cluster right now
		}
		if founding == "" {
			founding = state.founding
		}
		if founding != state.founding {
			n.logger.Error("these members belong to different clusters of one certificate authority: start this node with addresses of one cluster only", "name", m.name, "founding", state.founding, "other", founding)
			return
		}
		if state.suffrage == suffrageVoter && n.nodeFile.founders() == nil {
			n.report(fmt.Errorf("%w: the cluster counts %s as a voter, but %s is empty: run \"kontiki members remove %s\" against another node, then start this one again: it joins as a new member", ErrWipedVoter, n.cfg.Name, n.cfg.DataDir, n.cfg.Name))
			return
		}
	}
	if err := n.enterFounding(ctx, founding); err != nil {
		n.logger.Error("cannot enter the cluster", "error", err)
		return
	}
	n.transport.admitted.Store(true)
}

// found is the work of the first founder.
func (n *Node) found(ctx context.Context, f founders) {
	if f[0].Name != n.cfg.Name {
		return
	}
	id, err := n.nodeFile.propose(f)
	if err != nil {
		n.logger.Error("cannot found a cluster", "error", err)
		return
	}
	if id == "" {
		// An earlier promise stands in the way. It is this node's to take back only if it is
		// the first in it: another first one may have founded already.
		if old := n.nodeFile.founders(); len(old) > 0 && old[0].Name == n.cfg.Name {
			n.giveUpFounding(ctx, old)
		}
		return
	}
	for _, other := range f[1:] {
		if answer := n.askFounder(ctx, other, opAgree, f, id); answer != agreed {
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
			n.askFounder(ctx, other, opRelease, f, "")
		}
	}
	if err := n.nodeFile.release(f); err != nil {
		n.logger.Error("cannot found a cluster", "error", err)
	}
}

func (n *Node) askFounder(ctx context.Context, other founder, op byte, f founders, id string) byte {
	reply, err := n.exchange(ctx, other.Name, other.Addr, askAgree, agreement{op, id, f}.append(nil))
	if err != nil || len(reply.payload) != 1 {
		return disagreed
	}
	return reply.payload[0]
}

// answerAgree is the work of the other founders. Only the first one founds.
func (n *Node) answerAgree(peer string, payload []byte) (kind, []byte) {
	a, err := decodeAgreement(payload)
	f := a.founders
	if err != nil || !slices.Contains(f.names(), n.cfg.Name) || len(f) != n.cfg.expect() || f[0].Name != peer {
		return replyInvalid, nil
	}
	switch {
	case n.hasState.Load():
		return replyOK, []byte{hasData}
	case a.op == opRelease:
		if err := n.nodeFile.release(f); err != nil {
			return replyRefused, nil
		}
		n.transport.admitted.Store(n.nodeFile.founders() != nil)
		return replyOK, []byte{agreed}
	case a.founding == "":
		return replyInvalid, nil
	}
	promised, err := n.nodeFile.agree(f, a.founding)
	if err != nil || !promised {
		return replyOK, []byte{disagreed}
	}
	n.transport.admitted.Store(true)
	return replyOK, []byte{agreed}
}

// foundAlone makes this node a cluster of its own.
func (n *Node) foundAlone() error {
	alone := founders{{Name: n.cfg.Name, Addr: string(n.listener.advertise)}}
	if old := n.nodeFile.founders(); len(old) == 1 {
		// A crash in the middle of this; the address may have been another.
		if err := n.nodeFile.release(old); err != nil {
			return err
		}
	}
	id, err := n.nodeFile.propose(alone)
	if err != nil {
		return err
	}
	if id == "" && n.nodeFile.founders() != nil {
		return fmt.Errorf("%w: this node has promised to found a cluster with %v: start it with the same --join or --peers and --bootstrap-expect, or use an empty --data-dir", ErrConfig, n.nodeFile.founders().names())
	}
	if id == "" {
		return fmt.Errorf("%w: %s belongs to the cluster founded as %s: start this node with --join to enter it again, or restore a backup into an empty --data-dir", ErrLostLog, n.cfg.DataDir, n.nodeFile.settled())
	}
	n.transport.admitted.Store(true)
	return n.bootstrap(alone)
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
	if err := n.nodeFile.settle(); err != nil {
		return err
	}
	n.hasState.Store(true)
	n.standNow() // nobody can be leader yet, so there is no silence to wait for
	n.logger.Info("founded a cluster", "id", n.nodeFile.founding(), "with", f.names())
	return nil
}
