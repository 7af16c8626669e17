package cluster

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/hashicorp/raft"
)

// Raft asks for a vote once in an election, on a connection that it has kept. If the voter was
// restarted since, that connection is to a process that is gone, and the question is lost: the
// election fails for want of a vote that would have been given, and the next one is a second or
// two away. So a question that a dead connection took with it is put again. To ask twice is
// harmless: a voter gives the same answer to the same candidate and term.

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return pastDeadConns(func() error { return t.NetworkTransport.RequestVote(id, to, args, resp) })
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return pastDeadConns(func() error { return t.NetworkTransport.RequestPreVote(id, to, args, resp) })
}

// pastDeadConns asks until a connection that was kept is alive, or none is left.
func pastDeadConns(ask func() error) (err error) {
	for range peerPool + 1 {
		if err = ask(); !isDead(err) {
			return err
		}
	}
	return err
}

func isDead(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
