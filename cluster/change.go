package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// What a person asks of the configuration: Remove, Promote, Demote, TransferLeadership. Each
// works on any node and is decided by the leader, one at a time. An error says why not; the
// text that comes without one says what was done.

// Why a change is refused. Nothing has changed then.
var (
	// ErrUnknownNode: no node of that name is in the raft configuration.
	ErrUnknownNode = errors.New("no such node in the cluster")

	// ErrStillAlive: the node to remove still answers, and would enter again.
	ErrStillAlive = errors.New("the node is still running: stop it first")

	// ErrQuorum: the voters that would be left could not commit anything.
	ErrQuorum = errors.New("the cluster would lose its quorum")

	// ErrNotVoter: leadership can only go to a node that votes.
	ErrNotVoter = errors.New("the node has no vote")

	// ErrUnreachable: the leader gets no answer from the node, which has to agree.
	ErrUnreachable = errors.New("the node does not answer the leader")

	// ErrLeads: the leader cannot give up its vote.
	ErrLeads = errors.New("the node leads: transfer leadership first")

	// ErrNotTransferred: the other node has not taken over in time.
	ErrNotTransferred = errors.New("leadership was not handed over")
)

// denials are the codes of these errors on the wire. Append only.
func denials() []error {
	return []error{ErrUnknownNode, ErrStillAlive, ErrQuorum, ErrNotVoter, ErrUnreachable, ErrLeads, ErrNotTransferred}
}

// changeOp is what is asked for. Wire format: append only.
type changeOp byte

const (
	changeRemove   changeOp = 1
	changePromote  changeOp = 2
	changeDemote   changeOp = 3
	changeTransfer changeOp = 4
)

// Remove takes a stopped node out of the cluster. What comes back under its name enters
// like any other node.
func (n *Node) Remove(ctx context.Context, name string) (string, error) {
	return n.change(ctx, changeRemove, name)
}

// Promote gives a node a vote, at once if it has caught up, and else as soon as it has.
func (n *Node) Promote(ctx context.Context, name string) (string, error) {
	return n.change(ctx, changePromote, name)
}

// Demote takes a node's vote away, until Promote.
func (n *Node) Demote(ctx context.Context, name string) (string, error) {
	return n.change(ctx, changeDemote, name)
}

// TransferLeadership hands leadership to the node called to, or if that is empty to any other voter.
func (n *Node) TransferLeadership(ctx context.Context, to string) (string, error) {
	return n.change(ctx, changeTransfer, to)
}

// change has the leader make a change. Nothing is repeated: the person can.
func (n *Node) change(ctx context.Context, op changeOp, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RetryFor)
	defer cancel()
	leader := n.leaderID()
	switch leader {
	case "":
		return "", ErrNoLeader
	case n.self:
		return n.decide(ctx, op, name)
	}
	addr, ok := n.peerAddrOf(leader)
	if !ok {
		return "", ErrNoLeader
	}
	conn, err := n.peers.get(ctx, linkKey{name: string(leader), addr: string(addr), lane: laneControl})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	q, err := conn.ask(ctx, askChange, append([]byte{byte(op)}, name...))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	reply, err := q.wait(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return decodeChangeReply(reply)
}

func decodeChangeReply(reply frame) (string, error) {
	switch reply.kind {
	case replyOK:
		return string(reply.payload), nil
	case replyNotLeader:
		return "", ErrNoLeader
	case replyDenied:
		if all := denials(); len(reply.payload) > 0 && int(reply.payload[0]) < len(all) {
			return "", denied(all[reply.payload[0]], string(reply.payload[1:]))
		}
	}
	return "", ErrUnknownOutcome
}

// denied is an error with what there is to know beyond it.
func denied(reason error, detail string) error {
	if detail == "" {
		return reason
	}
	return &denial{reason, detail}
}

type denial struct {
	reason error
	detail string
}

func (d *denial) Error() string { return d.reason.Error() + ": " + d.detail }
func (d *denial) Unwrap() error { return d.reason }

func (n *Node) answerChange(ctx context.Context, payload []byte) (kind, []byte) {
	if len(payload) == 0 {
		return replyInvalid, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RetryFor)
	defer cancel()
	done, err := n.decide(ctx, changeOp(payload[0]), string(payload[1:]))
	if err == nil {
		return replyOK, []byte(done)
	}
	for code, reason := range denials() {
		if !errors.Is(err, reason) {
			continue
		}
		reply := []byte{byte(code)}
		var d *denial
		if errors.As(err, &d) {
			reply = append(reply, d.detail...)
		}
		return replyDenied, reply
	}
	if errors.Is(err, ErrNoLeader) {
		return replyNotLeader, nil
	}
	return replyUnknown, nil
}

// decide is the leader's part.
func (n *Node) decide(ctx context.Context, op changeOp, name string) (done string, err error) {
	if n.presiding() == nil {
		return "", ErrNoLeader
	}
	if err := n.changing.acquire(ctx, 1); err != nil {
		return "", fmt.Errorf("%w: another change of the configuration is in progress", ErrNoLeader)
	}
	defer n.changing.release(1)
	server, known := n.server(raft.ServerID(name))
	if !known && (op != changeTransfer || name != "") {
		return "", denied(ErrUnknownNode, name)
	}
	switch op {
	case changeRemove:
		done, err = n.remove(ctx, server)
	case changePromote:
		done, err = n.promote(ctx, server)
	case changeDemote:
		done, err = n.demote(ctx, server)
	case changeTransfer:
		done, err = n.transferTo(ctx, server)
	default:
		return "", ErrInvalid
	}
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		err = ErrNoLeader
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return done, err
}

func (n *Node) remove(ctx context.Context, server raft.Server) (string, error) {
	name := string(server.ID)
	states := n.askServers(ctx, n.cfg.VerifyTimeout)
	// One that answers without data has lost it, and takes no part.
	if state, ok := states[name]; ok && state.hasState {
		return "", denied(ErrStillAlive, name)
	}
	if err := n.checkQuorumWithout(server, states); err != nil {
		return "", err
	}
	if err := n.removeServer(ctx, server.ID); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is removed; %s", name, n.describeVoters()), nil
}

func (n *Node) removeServer(ctx context.Context, id raft.ServerID) error {
	n.logger.Info("removing a node", "name", id)
	return n.configure(ctx, func(id raft.ServerID, _ raft.ServerAddress, prev uint64, timeout time.Duration) raft.IndexFuture {
		return n.raft.RemoveServer(id, prev, timeout)
	}, id, "")
}

func (n *Node) promote(ctx context.Context, server raft.Server) (string, error) {
	name := string(server.ID)
	if err := n.tellVote(ctx, server, true); err != nil {
		return "", err
	}
	if server.Suffrage == raft.Voter {
		return name + " votes already", nil
	}
	if state, ok := n.askServers(ctx, n.cfg.VerifyTimeout)[name]; !ok || !n.caughtUp(state) {
		return name + " will vote as soon as it has caught up", nil
	}
	if err := n.configure(ctx, n.raft.AddVoter, server.ID, server.Address); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s votes; %s", name, n.describeVoters()), nil
}

func (n *Node) demote(ctx context.Context, server raft.Server) (string, error) {
	name := string(server.ID)
	if server.ID == n.self {
		return "", denied(ErrLeads, name)
	}
	if server.Suffrage == raft.Voter {
		if err := n.checkQuorumWithout(server, n.askServers(ctx, n.cfg.VerifyTimeout)); err != nil {
			return "", err
		}
	}
	// The node first: what it wants is what keeps it from being promoted again.
	if err := n.tellVote(ctx, server, false); err != nil {
		return "", err
	}
	if server.Suffrage != raft.Voter {
		return name + " has no vote", nil
	}
	err := n.configure(ctx, func(id raft.ServerID, _ raft.ServerAddress, prev uint64, timeout time.Duration) raft.IndexFuture {
		return n.raft.DemoteVoter(id, prev, timeout)
	}, server.ID, server.Address)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s has no vote any more; %s", name, n.describeVoters()), nil
}

// tellVote has a node remember whether it wants a vote. It keeps that itself, so that every
// later leader and its own restart find it.
func (n *Node) tellVote(ctx context.Context, server raft.Server, vote bool) error {
	var want byte
	if vote {
		want = 1
	}
	if server.ID == n.self {
		n.answerVote([]byte{want})
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.VerifyTimeout)
	defer cancel()
	addr, _ := n.peerAddrOf(server.ID)
	if _, err := n.exchange(ctx, string(server.ID), string(addr), askVote, []byte{want}); err != nil {
		return denied(ErrUnreachable, fmt.Sprintf("%s: %v", server.ID, err))
	}
	return nil
}

func (n *Node) answerVote(payload []byte) kind {
	if len(payload) != 1 || payload[0] > 1 {
		return replyInvalid
	}
	if err := n.nodeFile.want(payload[0] == 1); err != nil {
		n.logger.Error("cannot note whether this node votes", "error", err)
		return replyRefused
	}
	n.tellGossip(n.ctx)
	return replyOK
}

// checkQuorumWithout sees to it that the voters that are left without this one can commit:
// a majority of them answers.
func (n *Node) checkQuorumWithout(server raft.Server, states map[string]memberState) error {
	if server.Suffrage != raft.Voter {
		return nil
	}
	var left, silent []string
	for _, voter := range n.voters() {
		if voter == string(server.ID) {
			continue
		}
		left = append(left, voter)
		if state, ok := states[voter]; !ok || !state.hasState {
			silent = append(silent, voter)
		}
	}
	if answer := len(left) - len(silent); answer < len(left)/2+1 {
		return denied(ErrQuorum, fmt.Sprintf("without %s the voters are %v, and these do not answer: %v", server.ID, left, silent))
	}
	return nil
}

// voters returns the names of all voters, this node included.
func (n *Node) voters() (names []string) {
	for _, server := range n.servers() {
		if server.Suffrage == raft.Voter {
			names = append(names, string(server.ID))
		}
	}
	slices.Sort(names)
	return names
}

func (n *Node) describeVoters() string {
	voters := n.voters()
	return fmt.Sprintf("the voters are %v, of which %d may fail", voters, (len(voters)-1)/2)
}
