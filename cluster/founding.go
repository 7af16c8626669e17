package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Certificates tell a cluster from those of another CA, not from a second one that was
// founded under the same CA: by nodes whose disks were all wiped, or by one that was started
// alone on an empty directory. So each founding draws an id. Every node keeps it in
// node.json, says it in gossip and at the beginning of every connection between nodes, and
// has nothing to do with nodes that say another.
//
// A node that has none yet may ask and be asked, but no raft message reaches it.

// foundingBytes make an id that nobody draws twice.
const foundingBytes = 16

func newFounding() string {
	var id [foundingBytes]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// firstFounding is the id of what was founded before there were ids, and of whoever says
// none though it has data. It follows from the CA, so that nodes need not agree on it.
func firstFounding(cluster string) string {
	sum := sha256.Sum256([]byte("kontiki founding of " + cluster))
	return hex.EncodeToString(sum[:foundingBytes])
}

// A connection between nodes begins with a greeting each way, the dialer's first:
//
//	length u16 | version u8 | founding string
//
// The length counts what follows it; a later version may append fields.
const (
	greetingVersion = 1
	maxGreeting     = 1 << 10
)

func writeGreeting(w io.Writer, founding string) error {
	body := appendString([]byte{greetingVersion}, founding)
	_, err := w.Write(appendString(nil, string(body)))
	return err
}

func readGreeting(r io.Reader) (founding string, err error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	size := int(length[0])<<8 | int(length[1])
	if size > maxGreeting {
		return "", errMessage
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", err
	}
	m := messageReader{b: body}
	if m.byte() < greetingVersion {
		return "", errMessage
	}
	founding = m.string()
	return founding, m.err
}

// greet exchanges greetings on a fresh connection and decides whether the two nodes have
// anything to do with each other. Both sides decide, so each can say why not.
func (l *listener) greet(conn net.Conn, protocol string, dialer bool) (theirs string, err error) {
	if protocol == protoRaft1 || protocol == protoPeer1 {
		theirs = l.founding.first // a node that knows no greetings
		return theirs, l.related(protocol, theirs)
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return "", err
	}
	if dialer {
		err = writeGreeting(conn, l.founding.ours(protocol))
	}
	if err == nil {
		theirs, err = readGreeting(conn)
	}
	if err == nil && !dialer {
		err = writeGreeting(conn, l.founding.ours(protocol))
	}
	if err == nil {
		err = l.related(protocol, theirs)
	}
	return theirs, errors.Join(err, conn.SetDeadline(time.Time{}))
}

// related says whether a node with founding theirs may have a connection for protocol.
func (l *listener) related(protocol, theirs string) error {
	ours := l.founding.ours(protocol)
	switch {
	case ours != "" && theirs != "" && ours != theirs:
		return fmt.Errorf("%w: its founding is %s, this node's is %s", ErrOtherFounding, theirs, ours)
	case (ours == "" || theirs == "") && isRaft(protocol):
		return errNotEntered
	}
	return nil
}

// foundings is what a listener knows of foundings.
type foundings struct {
	first    string        // firstFounding of this CA
	promised func() string // nodeFile.founding
	settled  func() string // nodeFile.settled
}

// ours is what this node says. A promise counts among those who found together and who talk
// raft only if it came true.
func (f foundings) ours(protocol string) string {
	if isRaft(protocol) {
		return f.promised()
	}
	return f.settled()
}

func isRaft(protocol string) bool { return protocol == protoRaft || protocol == protoRaft1 }

// protocols is what this node speaks for raft or questions, newest first: without
// greetings only where the answer to a missing one is known.
func (f foundings) protocols(raft bool) []string {
	newest, oldest := protoPeer, protoPeer1
	if raft {
		newest, oldest = protoRaft, protoRaft1
	}
	if ours := f.promised(); ours != "" && ours != f.first {
		return []string{newest}
	}
	return []string{newest, oldest}
}

// enterFounding makes this node one of the cluster that the others belong to. Connections
// from before are cut: their other ends may belong to another one.
func (n *Node) enterFounding(ctx context.Context, id string) error {
	if n.nodeFile.founding() == id {
		return nil
	}
	if err := n.nodeFile.adopt(id); err != nil {
		return err
	}
	n.listener.dropOthers(id)
	n.tellGossip(ctx)
	return nil
}
