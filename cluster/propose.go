package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

const (
	firstPause = 20 * time.Millisecond
	longPause  = 500 * time.Millisecond

	// maxForgotten is how often a proposal that the FSM cannot judge any more is made anew.
	maxForgotten = 3
)

// proposalIDs makes command IDs: random per process, counting within it.
type proposalIDs struct {
	prefix [8]byte
	last   atomic.Uint64
}

func newProposalIDs() *proposalIDs {
	p := new(proposalIDs)
	rand.Read(p.prefix[:])
	return p
}

func (p *proposalIDs) next() (id fsm.ID) {
	copy(id[:8], p.prefix[:])
	binary.BigEndian.PutUint64(id[8:], p.last.Add(1))
	return id
}

// proposal is one command on its way through attempts.
type proposal struct {
	cmd   fsm.Command
	data  []byte
	maybe bool // an attempt may have reached the log
	room  bool // it makes room, and was refused for a full disk
}

// Propose has cmd committed and returns its result once this node has applied it. It fills
// in ID and Base, and works on any node: a follower forwards to the leader.
//
// An attempt that failed is repeated, with the same ID, until ctx ends or Config.RetryFor
// is over; the FSM sees to it that the command is applied once. The errors say what is
// known then: ErrNoLeader, ErrTooLarge, ErrInvalid, ErrDiskFull and ErrClosed mean that
// nothing was proposed, ErrUnknownOutcome that nobody knows. With ErrBehind comes the result of a
// command that is committed but could not be seen on this node before ctx ended.
func (n *Node) Propose(ctx context.Context, cmd fsm.Command) (fsm.Result, error) {
	p := &proposal{cmd: cmd}
	n.draw(p)
	if err := p.cmd.Validate(); err != nil {
		return fsm.Result{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(p.data) > n.cfg.MaxCommandBytes {
		return fsm.Result{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(p.data), n.cfg.MaxCommandBytes)
	}
	if !n.disk.admits(p.cmd.Op, len(p.data)) {
		if p.room = makesRoom(ctx); !p.room {
			return fsm.Result{}, n.disk.refusal(n.cfg.Name)
		}
	}
	defer n.timings.Propose.since(time.Now())
	result, err := n.persevere(ctx, p)
	if err != nil {
		return fsm.Result{}, err
	}
	if err := n.machine.WaitIndex(ctx, result.Index); err != nil {
		return result, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return result, nil
}

// draw gives p a new ID. Base tells the FSM from where on it must remember the ID.
func (n *Node) draw(p *proposal) {
	p.cmd.ID, p.cmd.Base = n.ids.next(), n.machine.Index()
	p.data = p.cmd.Append(make([]byte, 0, len(p.cmd.Key)+len(p.cmd.Value)+64))
}

// persevere repeats attempts until the result is known.
func (n *Node) persevere(ctx context.Context, p *proposal) (fsm.Result, error) {
	pause := backoff{next: firstPause, limit: longPause}
	start, forgotten := time.Now(), 0
	for {
		changed := n.changed.C()
		result, v := n.attempt(ctx, p)
		switch {
		case v == committed && result.Code == fsm.Forgotten && !p.maybe && forgotten < maxForgotten:
			// This very attempt was the first, so nothing has happened: this node's index was
			// too old. Catch up, then propose anew.
			forgotten++
			if err := n.Ready(ctx); err != nil {
				return fsm.Result{}, p.giveUp(err)
			}
			n.draw(p)
			continue
		case v == committed && result.Code == fsm.Forgotten:
			return fsm.Result{}, p.giveUp(errors.New("retried too late"))
		case v == committed:
			return result, nil
		case v == tooLarge:
			return fsm.Result{}, fmt.Errorf("%w: the leader's limit is lower", ErrTooLarge)
		case v == invalid:
			return fsm.Result{}, fmt.Errorf("%w: refused by the leader", ErrInvalid)
		case v == diskFull && !p.room && makesRoom(ctx):
			p.room = true
			continue
		case v == diskFull && !p.maybe:
			return fsm.Result{}, fmt.Errorf("%w: refused by the leader", ErrDiskFull)
		case v == diskFull:
			return fsm.Result{}, p.giveUp(ErrDiskFull)
		case v == unknown:
			p.maybe = true
		}
		if n.ctx.Err() != nil {
			return fsm.Result{}, p.giveUp(ErrClosed)
		}
		if time.Since(start) > n.cfg.RetryFor {
			return fsm.Result{}, p.giveUp(fmt.Errorf("gave up after %s", n.cfg.RetryFor))
		}
		if err := pause.wait(ctx, changed); err != nil {
			return fsm.Result{}, p.giveUp(err)
		}
	}
}

// giveUp is the error for a proposal that is not repeated any more.
func (p *proposal) giveUp(cause error) error {
	switch {
	case p.maybe:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, cause)
	case errors.Is(cause, ErrClosed):
		return cause
	}
	return fmt.Errorf("%w: %w", ErrNoLeader, cause)
}

// attempt tries once: here if this node leads, else with one hop to the leader.
func (n *Node) attempt(ctx context.Context, p *proposal) (fsm.Result, verdict) {
	if n.ctx.Err() != nil {
		return fsm.Result{}, refused
	}
	leader := n.leaderID()
	switch leader {
	case "":
		return fsm.Result{}, notLeader
	case n.self:
		return n.admit(ctx, p.data, p.room)
	}
	ask := askPropose
	if p.room {
		ask = askMakeRoom
	}
	reply, v := n.forward(ctx, leader, lanePropose, ask, p.data)
	if v != committed {
		return fsm.Result{}, v
	}
	result, err := fsm.DecodeResult(reply)
	if err != nil {
		n.logger.Error("the leader sent a result that cannot be read", "leader", leader, "error", err)
		return fsm.Result{}, unknown
	}
	return result, committed
}

// forward asks the leader, and stops waiting when another node leads: the first one may be
// paused or cut off, and would keep the question for ever.
func (n *Node) forward(ctx context.Context, leader raft.ServerID, l lane, what kind, payload []byte) ([]byte, verdict) {
	defer n.timings.Forward.since(time.Now())
	addr, ok := n.peerAddrOf(leader)
	if !ok {
		return nil, refused
	}
	conn, err := n.peers.get(ctx, linkKey{name: string(leader), addr: string(addr), lane: l})
	if err != nil {
		return nil, refused
	}
	q, err := conn.ask(ctx, what, payload)
	if err != nil {
		return nil, refused
	}
	reply, err := n.waitWhileLeading(ctx, q, leader)
	if err != nil {
		return nil, unknown
	}
	return reply.payload, reply.kind.verdict()
}

// waitWhileLeading waits for the reply of a leader until there is another one.
func (n *Node) waitWhileLeading(ctx context.Context, q *call, leader raft.ServerID) (frame, error) {
	for {
		changed := n.changed.C()
		if now := n.leaderID(); now != "" && now != leader {
			q.forget()
			return frame{}, errWireClosed
		}
		select {
		case reply := <-q.reply:
			return reply, nil
		case <-q.conn.dead:
			return frame{}, errWireClosed
		case <-ctx.Done():
			q.forget()
			return frame{}, ctx.Err()
		case <-n.ctx.Done():
			return frame{}, ErrClosed
		case <-changed:
		}
	}
}

// verdict is what a reply says about the question.
func (k kind) verdict() verdict {
	switch k {
	case replyOK:
		return committed
	case replyNotLeader:
		return notLeader
	case replyRefused, replyNoQuorum:
		return refused
	case replyTooLarge:
		return tooLarge
	case replyInvalid:
		return invalid
	case replyDiskFull:
		return diskFull
	}
	return unknown
}
