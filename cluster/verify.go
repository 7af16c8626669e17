package cluster

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft"
)

// confirmTerm proves that no node had won a later term when it was called: a majority of the
// voters says, after the question, that it has seen none. A winner of a later term needs the
// votes of a majority, each of them knows that term before it votes, and the two majorities
// share a node.
//
// Raft's own VerifyLeader takes any acknowledgement that arrives after the call, also of a
// message that was sent before it. Those of a leader that was paused and wakes up, or that
// was cut off, can be older than the other leader's election: a stale read. It also waits
// for the main goroutines here and there, which is to say for their disks; this does not.
func (n *Node) confirmTerm(term uint64) error {
	voters, needed := n.otherVoters()
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.VerifyTimeout)
	defer cancel()
	answers := make(chan error, len(voters))
	if needed > 0 {
		question := binary.BigEndian.AppendUint64(nil, term)
		for _, voter := range voters {
			go func() { answers <- n.askTerm(ctx, voter, question) }()
		}
	}
	var last error
	for left := len(voters); needed > 0; left-- {
		if left < needed {
			return fmt.Errorf("%w: %w", ErrNoQuorum, last)
		}
		if err := <-answers; err != nil {
			last = err
		} else {
			needed--
		}
	}
	if !n.leadsIn(term) {
		return ErrNoLeader
	}
	return nil
}

func (n *Node) leadsIn(term uint64) bool {
	return n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term
}

// otherVoters returns the voters besides this node, and how many of them make a majority with it.
func (n *Node) otherVoters() (voters []raft.Server, needed int) {
	total, self := 0, 0
	for _, server := range n.servers() {
		if server.Suffrage != raft.Voter {
			continue
		}
		total++
		if server.ID == n.self {
			self = 1
		} else {
			voters = append(voters, server)
		}
	}
	return voters, total/2 + 1 - self
}

func (n *Node) askTerm(ctx context.Context, voter raft.Server, question []byte) error {
	addr, ok := n.peerAddrOf(voter.ID)
	if !ok {
		addr = voter.Address
	}
	_, err := n.exchange(ctx, string(voter.ID), string(addr), askTerm, question)
	return err
}

// answerTerm confirms that this node has not voted in a term after the one asked about.
// Raft stores and sets its term before it votes.
func (n *Node) answerTerm(payload []byte) kind {
	switch {
	case len(payload) != 8:
		return replyInvalid
	case !n.transport.admitted.Load():
		return replyRefused // it may have voted before it lost its data
	case n.raft.CurrentTerm() > binary.BigEndian.Uint64(payload):
		return replyNotLeader
	}
	return replyOK
}
