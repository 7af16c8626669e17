package cluster

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's followers learn that an entry is committed with the next entry, or, if there is
// none, after CommitTimeout: on a quiet cluster that is the latency of every watch on a
// follower and of every write through one. So the leader of a commit tells them at once, in
// a message of a few bytes; the follower turns it into the empty append that raft would
// have sent later, and gives that to raft.
//
// It can do no harm, whenever it arrives: it says that a certain entry of a certain term is
// committed, which once true is true for ever, and raft checks it like any other append.
// If the message overtakes the entry, the transport keeps it until the entry has come.

// commitPace is the least time between two messages. Under load the entries themselves
// carry the commit index.
const commitPace = time.Millisecond

// commitMark names a committed entry, and the term of the leader who says so.
type commitMark struct {
	term, index, entryTerm uint64
}

func (m commitMark) append(dst []byte) []byte {
	for _, v := range []uint64{m.term, m.index, m.entryTerm} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	return dst
}

func decodeCommitMark(b []byte) (commitMark, error) {
	if len(b) != 24 {
		return commitMark{}, errMessage
	}
	return commitMark{
		term:      binary.BigEndian.Uint64(b),
		index:     binary.BigEndian.Uint64(b[8:]),
		entryTerm: binary.BigEndian.Uint64(b[16:]),
	}, nil
}

// commitLoop is the leader's: it wakes when a command was applied.
func (n *Node) commitLoop(ctx context.Context) {
	var told uint64
	for {
		select {
		case <-n.applied:
		case <-ctx.Done():
			return
		}
		if mark, ok := n.commitMark(told); ok {
			told = mark.index
			n.tellCommit(mark)
		}
		select {
		case <-time.After(commitPace):
		case <-ctx.Done():
			return
		}
	}
}

// noteApplied wakes commitLoop, if it is not awake.
func (n *Node) noteApplied() {
	select {
	case n.applied <- struct{}{}:
	default:
	}
}

// commitMark returns what is committed beyond told.
func (n *Node) commitMark(told uint64) (commitMark, bool) {
	p := n.presiding()
	mark := commitMark{index: n.raft.CommitIndex()}
	var entry raft.Log
	if p == nil || mark.index <= told || n.storage.cache.GetLog(mark.index, &entry) != nil {
		return commitMark{}, false
	}
	mark.term, mark.entryTerm = p.term, entry.Term
	return mark, true
}

// tellCommit sends mark to all that are reachable without waiting.
func (n *Node) tellCommit(mark commitMark) {
	f := frame{kind: tellCommit, payload: mark.append(nil)}
	for _, server := range n.servers() {
		if server.ID == n.self {
			continue
		}
		if addr, ok := n.peerAddrOf(server.ID); ok {
			n.peers.tell(linkKey{name: string(server.ID), addr: string(addr), lane: laneControl}, f)
		}
	}
}

// hearCommit is the follower's part.
func (n *Node) hearCommit(peer string, payload []byte) {
	mark, err := decodeCommitMark(payload)
	from, id := n.raft.LeaderWithID()
	if err != nil || string(id) != peer || mark.term != n.raft.CurrentTerm() {
		return
	}
	if mark.index <= n.raft.CommitIndex() {
		return
	}
	n.transport.inject(&raft.AppendEntriesRequest{
		RPCHeader:         raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(from)},
		Term:              mark.term,
		Leader:            []byte(from),
		PrevLogEntry:      mark.index,
		PrevLogTerm:       mark.entryTerm,
		LeaderCommitIndex: mark.index,
	})
}
