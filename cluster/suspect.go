package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// Raft notices by silence that its leader is gone, after one to three HeartbeatTimeouts.
// When the process died and its machine lives, the machine says so at once: it resets the
// connections and refuses new ones. A follower that sees both for its leader's peer port
// starts the election then, as if the leader had handed over to it; that is raft's own
// TimeoutNow message, given to its own raft.
//
// It is a hint about when, not about who: the election itself is raft's. A machine that is
// paused, cut off or without power refuses nothing, and is left to raft's timeouts.

const (
	// suspectPause keeps a network that resets connections from causing one election after another.
	suspectPause = 3 // HeartbeatTimeouts

	// While a process ends, its connections may be closed before it stops to listen.
	refusalTries = 10
	refusalPause = 10 * time.Millisecond

	// suspectStagger is how long each voter leaves the one before it to win.
	suspectStagger = 5 // th of a HeartbeatTimeout
)

// lostConn notes that a raft connection from peer has ended. What counts is who led last, not whom
// raft takes for its leader now: a voter that was faster may have asked for this node's vote
// already, and raft then has none. If that voter lacks an entry it does not win, and it is this
// node that must stand.
func (n *Node) lostConn(peer string) {
	if led := n.led.Load(); led == nil || string(*led) != peer {
		return
	}
	select {
	case n.lost <- peer:
	default:
	}
}

// suspectLoop looks after leaders whose connections end.
func (n *Node) suspectLoop() {
	var last time.Time
	for {
		select {
		case peer := <-n.lost:
			if time.Since(last) > suspectPause*n.cfg.HeartbeatTimeout && n.succeed(raft.ServerID(peer)) {
				last = time.Now()
			}
		case <-n.ctx.Done():
			return
		}
	}
}

// succeed starts an election if the leader's machine says that the leader is gone, and
// says whether it did.
func (n *Node) succeed(leader raft.ServerID) bool {
	rank := n.rank(leader)
	if rank < 0 || !n.noneBut(leader) || !n.refusesConnections(leader) {
		return false
	}
	if !n.pause(time.Duration(rank) * n.cfg.HeartbeatTimeout / suspectStagger) {
		return false
	}
	if n.raft.State() != raft.Follower || !n.noneBut(leader) {
		return false
	}
	n.logger.Warn("the leader's process is gone, starting an election", "leader", leader)
	n.standNow()
	return true
}

// noneBut says whether nobody else leads.
func (n *Node) noneBut(leader raft.ServerID) bool {
	now := n.leaderID()
	return now == leader || now == ""
}

// standNow makes this node a candidate at once.
func (n *Node) standNow() {
	n.transport.inject(&raft.TimeoutNowRequest{RPCHeader: n.transport.header})
}

// rank is this node's place among the voters that are left, -1 if it has no vote.
func (n *Node) rank(leader raft.ServerID) int {
	var left []raft.ServerID
	for _, server := range n.servers() {
		if server.Suffrage == raft.Voter && server.ID != leader {
			left = append(left, server.ID)
		}
	}
	slices.SortFunc(left, func(a, b raft.ServerID) int { return strings.Compare(string(a), string(b)) })
	return slices.Index(left, n.self)
}

// pause returns false if the node closes meanwhile.
func (n *Node) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// refusesConnections says whether a node's machine refuses connections to it, or does so in a moment.
func (n *Node) refusesConnections(id raft.ServerID) bool {
	addr, ok := n.peerAddrOf(id)
	if !ok {
		return false
	}
	return refusedSoon(func() (refused, accepted bool) { return n.dial(addr) }, n.pause)
}

// refusedSoon dials until it is refused, fails in another way, or has been accepted too often.
func refusedSoon(dial func() (refused, accepted bool), pause func(time.Duration) bool) bool {
	for range refusalTries {
		refused, accepted := dial()
		if refused || !accepted || !pause(refusalPause) {
			return refused
		}
	}
	return false
}

func (n *Node) dial(addr raft.ServerAddress) (refused, accepted bool) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.HeartbeatTimeout/2)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", string(addr))
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED), err == nil
}
