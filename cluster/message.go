package cluster

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

var errMessage = errors.New("malformed message")

// peerStatus is what a node tells another about itself and about the one who asks.
type peerStatus struct {
	hasState bool   // it has a log or a snapshot
	applied  uint64 // its FSM's index
	suffrage byte   // of the asking node in its raft configuration: suffrage... constants
}

const (
	suffrageNone  = 0
	suffrageVoter = 1
	suffrageOther = 2
)

const peerStatusBytes = 10

func (s peerStatus) append(dst []byte) []byte {
	var state byte
	if s.hasState {
		state = 1
	}
	dst = append(dst, state, s.suffrage)
	return binary.BigEndian.AppendUint64(dst, s.applied)
}

func decodePeerStatus(b []byte) (peerStatus, error) {
	if len(b) != peerStatusBytes || b[0] > 1 || b[1] > suffrageOther {
		return peerStatus{}, errMessage
	}
	return peerStatus{hasState: b[0] == 1, suffrage: b[1], applied: binary.BigEndian.Uint64(b[2:])}, nil
}

// maxFounders is more voters than is wise. Nodes beyond it join later.
const maxFounders = 9

// founder is one of the nodes that bootstrap a cluster together.
type founder struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// founders is sorted by name, so that all of them write the identical configuration.
type founders []founder

func (f founders) sorted() founders {
	slices.SortFunc(f, func(a, b founder) int { return strings.Compare(a.Name, b.Name) })
	return f
}

func (f founders) names() []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].Name
	}
	return names
}

func (f founders) append(dst []byte) []byte {
	dst = append(dst, byte(len(f)))
	for _, one := range f {
		dst = appendString(appendString(dst, one.Name), one.Addr)
	}
	return dst
}

func decodeFounders(b []byte) (founders, error) {
	r := messageReader{b: b}
	n := r.byte()
	if n > maxFounders {
		return nil, errMessage
	}
	f := make(founders, n)
	for i := range f {
		f[i] = founder{Name: r.string(), Addr: r.string()}
	}
	return f, r.end()
}

// agreement is what the first founder asks the others for, or gives back.
type agreement struct {
	op       byte
	founding string // the id that it has drawn
	founders founders
}

func (a agreement) append(dst []byte) []byte {
	return a.founders.append(appendString(append(dst, a.op), a.founding))
}

func decodeAgreement(b []byte) (agreement, error) {
	r := messageReader{b: b}
	a := agreement{op: r.byte(), founding: r.string()}
	if r.err != nil {
		return agreement{}, r.err
	}
	var err error
	a.founders, err = decodeFounders(r.b)
	return a, err
}

// memberState is what a node tells another about itself, more than peerStatus.
type memberState struct {
	peerStatus
	nonVoter bool // it wants no vote
	term     uint64
	contact  time.Duration // since it heard its leader; 0 if it leads, -1 if never
	founding string
	version  string // of the program
}

const noContact = ^uint64(0)

func (s memberState) append(dst []byte) []byte {
	dst = s.peerStatus.append(dst)
	contact := noContact
	if s.contact >= 0 {
		contact = uint64(s.contact.Milliseconds())
	}
	var wish byte
	if s.nonVoter {
		wish = 1
	}
	dst = append(dst, wish)
	for _, n := range []uint64{s.term, contact} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return appendString(appendString(dst, s.founding), s.version)
}

func decodeMemberState(b []byte) (s memberState, err error) {
	r := messageReader{b: b}
	if s.peerStatus, err = decodePeerStatus(r.take(peerStatusBytes)); err != nil {
		return memberState{}, err
	}
	s.nonVoter = r.byte() == 1
	s.term = r.uint64()
	s.contact = -1
	if contact := r.uint64(); contact <= maxContact {
		s.contact = time.Duration(contact) * time.Millisecond
	}
	s.founding, s.version = r.string(), r.string()
	// A later version may append fields.
	return s, r.err
}

// maxContact bounds what is taken for a duration.
const maxContact = uint64(math.MaxInt64 / int64(time.Millisecond))

func appendString(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

// messageReader reads a message; after the first error it returns zeros.
type messageReader struct {
	b   []byte
	err error
}

func (r *messageReader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.err = nil, errMessage
		return make([]byte, n)
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *messageReader) byte() byte     { return r.take(1)[0] }
func (r *messageReader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *messageReader) string() string {
	n := int(binary.BigEndian.Uint16(r.take(2)))
	if n > len(r.b) {
		r.b, r.err = nil, errMessage
		return ""
	}
	return string(r.take(n))
}

func (r *messageReader) end() error {
	if r.err == nil && len(r.b) > 0 {
		return errMessage
	}
	return r.err
}
