package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Op says what a command does. Values are wire format: append only, never reuse.
type Op uint8

// The operations. A fifth one needs a paragraph in DESIGN.md.
const (
	OpCreate Op = 1 // the key must not exist
	OpUpdate Op = 2 // the key must exist, and be at Expect unless that is 0
	OpDelete Op = 3 // like OpUpdate

	// OpRestore replaces the whole state by the snapshot file whose pieces are
	// staged below Key, see StagingPrefix.
	OpRestore Op = 4
)

// String returns the word for o that logs and metrics use.
func (o Op) String() string {
	switch o {
	case OpCreate:
		return "create"
	case OpUpdate:
		return "update"
	case OpDelete:
		return "delete"
	case OpRestore:
		return "restore"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// commandVersion leads every encoded command.
const commandVersion = 1

// Hard limits of the format. They bound what a decoder allocates for garbage;
// a node's own limit on the size of an object is lower.
const (
	MaxKey   = 4 << 10
	MaxValue = 16 << 20
)

// ID names a proposal. Its proposer draws it at random, once, and keeps it over
// retries, so that a command which reached the log twice is applied once.
type ID [16]byte

// Command is what a log entry carries: one conditional write of one key.
type Command struct {
	Op Op
	ID ID
	// Base is an index that the proposer's FSM had reached when it first
	// proposed this command. A retry keeps it: it tells the FSM whether it may
	// have forgotten a first application.
	Base uint64
	// Key is "/<group>/<resource>/...".
	Key string
	// Expect is the ModIndex that Update and Delete require; 0 is any. Create
	// has none: its precondition is that the key does not exist.
	Expect uint64
	// Value is the new value, for Create and Update.
	Value []byte
	// Expires is in unix seconds, 0 is never. The FSM stores it and orders by
	// it; only the leader's timer compares it with a clock.
	Expires int64
}

// Validate reports what would make this command undecodable. Proposers call it,
// because a command that is committed and cannot be decoded stops every node.
func (c Command) Validate() error {
	switch {
	case c.Op < OpCreate || c.Op > OpRestore:
		return fmt.Errorf("unknown operation %d", uint8(c.Op))
	case c.ID == ID{}:
		return errors.New("command has no id") // a second one would pass for its retry
	case c.Op == OpCreate && c.Expect != 0:
		return errors.New("create with an expected index")
	case c.Op == OpDelete && (len(c.Value) > 0 || c.Expires != 0):
		return errors.New("delete with a value or an expiry")
	case c.Op == OpRestore && !c.bareRestore():
		return errors.New("restore of something other than a staged snapshot")
	case len(c.Value) > MaxValue:
		return fmt.Errorf("value of %d bytes, at most %d are allowed", len(c.Value), MaxValue)
	}
	return validKey(c.Key)
}

// bareRestore reports whether a restore names staged pieces and nothing else.
func (c Command) bareRestore() bool {
	return strings.HasPrefix(c.Key, StagingPrefix) && strings.HasSuffix(c.Key, "/") && len(c.Key) > len(StagingPrefix) &&
		c.Expect == 0 && len(c.Value) == 0 && c.Expires == 0
}

func validKey(key string) error {
	switch {
	case len(key) < 2 || key[0] != '/':
		return fmt.Errorf("key %.64q does not start with a slash and a segment", key)
	case len(key) > MaxKey:
		return fmt.Errorf("key of %d bytes, at most %d are allowed", len(key), MaxKey)
	}
	return nil
}

// OpOf returns the operation of an encoded command, 0 if it is none. It is for
// those who pass commands on and need not know the rest.
func OpOf(encoded []byte) Op {
	if len(encoded) < 2 || encoded[0] != commandVersion {
		return 0
	}
	return Op(encoded[1])
}

// Append encodes c behind dst: version, op, id, base, expect, expires, key,
// value; numbers as varints, key and value with their length before them.
func (c Command) Append(dst []byte) []byte {
	dst = append(dst, commandVersion, byte(c.Op))
	dst = append(dst, c.ID[:]...)
	dst = binary.AppendUvarint(dst, c.Base)
	dst = binary.AppendUvarint(dst, c.Expect)
	dst = binary.AppendVarint(dst, c.Expires)
	dst = appendBytes(dst, c.Key)
	return appendBytes(dst, c.Value)
}

// DecodeCommand is the strict inverse of Append: it returns an error for any
// input that Append does not make from a valid command. The Value aliases b.
func DecodeCommand(b []byte) (Command, error) {
	r := reader{b: b}
	if v := r.byte(); r.err == nil && v != commandVersion {
		return Command{}, fmt.Errorf("command: version %d, this program knows %d", v, commandVersion)
	}
	c := Command{Op: Op(r.byte())}
	copy(c.ID[:], r.take(uint64(len(c.ID))))
	c.Base = r.uvarint()
	c.Expect = r.uvarint()
	c.Expires = r.varint()
	c.Key = string(r.bytes(MaxKey))
	c.Value = r.bytes(MaxValue)
	err := r.end()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return Command{}, fmt.Errorf("command: %w", err)
	}
	return c, nil
}
