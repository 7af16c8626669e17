package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// handOver gives leadership away before this node stops. The other place that does is a
// person's command; no timer and no rule does, because a transfer that races with a
// step-down can leave a leader that refuses everything (hashicorp/raft#696, see
// transferWatch).
func (n *Node) handOver(ctx context.Context) {
	if n.raft == nil || n.raft.State() != raft.Leader || n.soleVoter() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*n.cfg.ElectionTimeout)
	defer cancel()
	to, _ := n.successor(ctx)
	if err := n.transferLeadership(ctx, to); err != nil {
		n.logger.Warn("leadership was not handed over", "error", err)
	}
}

// transferLeadership runs a transfer, to any voter if to is empty.
func (n *Node) transferLeadership(ctx context.Context, to raft.Server) error {
	done := make(chan error, 1)
	go func() {
		if to.ID == "" {
			done <- n.raft.LeadershipTransfer().Error()
		} else {
			done <- n.raft.LeadershipTransferToServer(to.ID, to.Address).Error()
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// soleVoter: there is nobody to hand over to.
func (n *Node) soleVoter() bool {
	others, _ := n.otherVoters()
	return len(others) == 0
}

// transferTo is a person's command; to may be empty.
func (n *Node) transferTo(ctx context.Context, to raft.Server) (string, error) {
	switch {
	case to.ID == n.self:
		return string(to.ID) + " leads already", nil
	case to.ID != "" && to.Suffrage != raft.Voter:
		return "", denied(ErrNotVoter, string(to.ID))
	case n.soleVoter():
		return "", denied(ErrNotVoter, "there is no other voter")
	}
	if to.ID == "" {
		var ok bool
		if to, ok = n.successor(ctx); !ok {
			return "", denied(ErrUnreachable, "no other voter")
		}
	} else if _, ok := n.askServers(ctx, n.cfg.VerifyTimeout)[string(to.ID)]; !ok {
		return "", denied(ErrUnreachable, string(to.ID))
	}
	n.logger.Info("handing leadership over", "to", to.ID)
	if err := n.transferLeadership(ctx, to); err != nil {
		if errors.Is(err, raft.ErrNotLeader) {
			return "", err
		}
		return "", denied(ErrNotTransferred, fmt.Sprintf("%s: %v", to.ID, err))
	}
	return n.waitSuccessor(ctx)
}

// waitSuccessor waits until another node leads.
func (n *Node) waitSuccessor(ctx context.Context) (string, error) {
	for {
		changed := n.changed.C()
		if leader := n.leaderID(); leader != "" && leader != n.self {
			return string(leader) + " leads", nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ErrUnknownOutcome
		}
	}
}
