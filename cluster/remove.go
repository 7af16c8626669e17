package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Errors of Remove.
var (
	// ErrStillAlive: the node to remove still answers gossip, and would be added again.
	ErrStillAlive = errors.New("node is still running: stop it first")

	// ErrUnknownNode: no node of that name is in the raft configuration.
	ErrUnknownNode = errors.New("no such node in the cluster")
)

// Remove takes a stopped node out of the cluster for good; what comes back under its name
// would be a new node. It works on any node. Nothing else ever removes a node.
func (n *Node) Remove(ctx context.Context, name string) error {
	if m, ok := n.roster.get(name); ok && m.alive {
		return fmt.Errorf("%w: %s", ErrStillAlive, name)
	}
	leader := n.leaderID()
	switch leader {
	case "":
		return ErrNoLeader
	case n.self:
		return n.remove(ctx, raft.ServerID(name))
	}
	_, v := n.forward(ctx, leader, laneControl, askRemove, []byte(name))
	switch v {
	case committed:
		return nil
	case invalid:
		return fmt.Errorf("%w: %s", ErrUnknownNode, name)
	case unknown:
		return ErrUnknownOutcome
	}
	return ErrNoLeader
}

func (n *Node) remove(ctx context.Context, id raft.ServerID) error {
	if _, known := n.server(id); !known {
		return fmt.Errorf("%w: %s", ErrUnknownNode, id)
	}
	n.logger.Info("removing a node", "name", id)
	return n.configure(ctx, func(id raft.ServerID, _ raft.ServerAddress, prev uint64, timeout time.Duration) raft.IndexFuture {
		return n.raft.RemoveServer(id, prev, timeout)
	}, id, "")
}

func (n *Node) answerRemove(ctx context.Context, name string) kind {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RetryFor)
	defer cancel()
	err := n.remove(ctx, raft.ServerID(name))
	switch {
	case err == nil:
		return replyOK
	case errors.Is(err, ErrUnknownNode):
		return replyInvalid
	case errors.Is(err, raft.ErrNotLeader):
		return replyNotLeader
	}
	return replyUnknown
}
