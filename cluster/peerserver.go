package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// maxCalls bounds the questions of one connection that are being answered. At the bound,
// the connection is not read: the asker waits.
const maxCalls = 1024

// servePeer answers the questions of one peer until its connection ends.
func (n *Node) servePeer(conn net.Conn, peer string) {
	ctx, cancel := context.WithCancel(n.ctx)
	w := newWire(conn)
	var wg sync.WaitGroup
	wg.Go(w.writeLoop)
	tokens := make(chan struct{}, maxCalls)
	reader := bufio.NewReaderSize(conn, wireBuffer)
	for {
		f, err := readFrame(reader, n.cfg.MaxCommandBytes+frameSlack)
		if err != nil {
			break
		}
		if f.kind == tellCommit {
			n.hearCommit(peer, f.payload)
			continue
		}
		if reply, ok := n.answerAtOnce(peer, f); ok {
			w.send(ctx, reply)
			continue
		}
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			code, payload := n.answer(ctx, peer, f)
			w.send(ctx, frame{id: f.id, kind: code, payload: payload})
		})
	}
	cancel()
	w.close()
	wg.Wait()
}

// answerAtOnce answers what reads wait for and what takes no waiting here.
func (n *Node) answerAtOnce(peer string, f frame) (frame, bool) {
	switch f.kind {
	case askTerm:
		return frame{id: f.id, kind: n.answerTerm(f.payload)}, true
	case askRead:
		if index, ok := n.attestedIndex(peer, f.payload); ok {
			return frame{id: f.id, kind: replyOK, payload: binary.BigEndian.AppendUint64(nil, index)}, true
		}
	}
	return frame{}, false
}

// answer is the table of what nodes ask each other, but for what is answered at once.
func (n *Node) answer(ctx context.Context, peer string, f frame) (kind, []byte) {
	switch f.kind {
	case askPropose, askMakeRoom:
		return n.answerPropose(ctx, f.payload, f.kind == askMakeRoom)
	case askRead:
		return n.answerRead(ctx)
	case askStatus:
		return replyOK, n.peerStatusFor(peer).append(nil)
	case askAgree:
		return n.answerAgree(peer, f.payload)
	case askMember:
		return replyOK, n.memberStateFor(peer).append(nil)
	case askChange:
		return n.answerChange(ctx, f.payload)
	case askVote:
		return n.answerVote(f.payload), nil
	case askReport:
		return replyOK, n.ownReport()
	case askLogEnd:
		return replyOK, n.logEnd().append(nil)
	}
	return replyInvalid, nil
}

func (n *Node) answerPropose(ctx context.Context, data []byte, room bool) (kind, []byte) {
	// An entry that cannot be decoded would stop every node when it is applied.
	if _, err := fsm.DecodeCommand(data); err != nil {
		return replyInvalid, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxForwardWait)
	defer cancel()
	result, v := n.admit(ctx, data, room)
	switch v {
	case committed:
		return replyOK, result.Append(nil)
	case notLeader:
		return replyNotLeader, []byte(n.leaderID())
	case refused:
		return replyRefused, nil
	case tooLarge:
		return replyTooLarge, nil
	case diskFull:
		return replyDiskFull, nil
	}
	return replyUnknown, nil
}

func (n *Node) answerRead(ctx context.Context) (kind, []byte) {
	index, err := n.confirmed.join(ctx)
	switch {
	case err == nil:
		return replyOK, binary.BigEndian.AppendUint64(nil, index)
	case n.presiding() == nil:
		return replyNotLeader, []byte(n.leaderID())
	}
	return replyNoQuorum, nil
}

// peerStatusFor is this node's status as told to peer.
func (n *Node) peerStatusFor(peer string) peerStatus {
	// A founder's first entry may be here before enterLoop has looked.
	s := peerStatus{hasState: n.hasState.Load() || n.raft.LastIndex() > 0, applied: n.machine.Index()}
	for _, server := range n.servers() {
		if server.ID != raft.ServerID(peer) {
			continue
		}
		if s.suffrage = suffrageOther; server.Suffrage == raft.Voter {
			s.suffrage = suffrageVoter
		}
	}
	return s
}
