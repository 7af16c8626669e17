package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame on a peer connection is
//
//	length u32 | id u64 | kind u8 | payload
//
// big-endian, length counting what follows it. A response carries the id of its request.
const (
	frameHeader = 8 + 1
	// frameSlack is what a payload may need beyond a command: the codes and the entry
	// around a value of the largest size.
	frameSlack = 64 << 10
)

// kind says what a frame asks, or for a response how it went. Wire format: append only.
type kind uint8

const (
	askPropose kind = 1 // payload: fsm.Command; reply: fsm.Result
	askRead    kind = 2 // payload: nothing, or the asker's term u64; reply: index u64
	askStatus  kind = 3 // reply: peerStatus
	askAgree   kind = 4 // payload: founders; reply: agreement u8
	askTerm    kind = 5 // payload: term u64; reply: nothing, if the node has seen no later term
	tellCommit kind = 6 // payload: commitMark; no reply
	// 7 was the removal of a node, before askChange.
	askMember   kind = 8  // reply: memberState
	askChange   kind = 9  // payload: changeOp u8, name of a node; reply: what was done, or replyDenied
	askVote     kind = 10 // payload: u8, 0 if the node shall want no vote from now on
	askLogEnd   kind = 16 // reply: LogEnd
	askReport   kind = 20 // reply: what Node.OnReport makes
	askMakeRoom kind = 21 // like askPropose, whatever the leader's disk has left

	replyOK        kind = 128
	replyNotLeader kind = 129 // surely not proposed; payload: name of the leader, if known
	replyRefused   kind = 130 // surely not proposed, try again
	replyUnknown   kind = 131 // may have been proposed
	replyTooLarge  kind = 132
	replyInvalid   kind = 133
	replyNoQuorum  kind = 134
	replyDenied    kind = 135 // payload: code u8, text
	replyDiskFull  kind = 140 // surely not proposed
)

var errFrame = errors.New("malformed frame")

type frame struct {
	id      uint64
	kind    kind
	payload []byte
}

func writeFrame(w *bufio.Writer, f frame) error {
	var header [4 + frameHeader]byte
	binary.BigEndian.PutUint32(header[0:], uint32(frameHeader+len(f.payload)))
	binary.BigEndian.PutUint64(header[4:], f.id)
	header[12] = byte(f.kind)
	if _, err := w.Write(header[:]); err != nil {
		return err
	}
	_, err := w.Write(f.payload)
	return err
}

// readFrame reads one frame whose payload is at most limit bytes. The payload is the
// caller's to keep.
func readFrame(r *bufio.Reader, limit int) (frame, error) {
	var header [4 + frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	length := int64(binary.BigEndian.Uint32(header[0:])) - frameHeader
	if length < 0 || length > int64(limit) {
		return frame{}, fmt.Errorf("%w: %d bytes of payload, at most %d are allowed", errFrame, length, limit)
	}
	f := frame{id: binary.BigEndian.Uint64(header[4:]), kind: kind(header[12])}
	if length > 0 {
		f.payload = make([]byte, length)
		if _, err := io.ReadFull(r, f.payload); err != nil {
			return frame{}, fmt.Errorf("%w: %w", errFrame, err)
		}
	}
	return f, nil
}
