package fsm

import (
	"encoding/binary"
	"sync/atomic"
)

// Entry is one version of one key. It is immutable once it is in the state and
// is shared by every view, event and reader: never write to its fields or to
// the bytes of Value. (It must not get a Copy or IsoCopy method: the tree would
// call it.)
type Entry struct {
	Key   string
	Value []byte
	// CreateIndex and ModIndex are the log indexes of the command that created
	// the key and of the one that made this version.
	CreateIndex, ModIndex uint64
	// Expires is Command.Expires.
	Expires int64

	memo atomic.Pointer[memo]
}

type memo struct{ v any }

// Memo returns what a reader stored with SetMemo, or nil.
func (e *Entry) Memo() any {
	if m := e.memo.Load(); m != nil {
		return m.v
	}
	return nil
}

// SetMemo keeps v with this version: the decoded object, its encodings. The first
// call wins and all calls return the winner, so concurrent readers end up sharing
// one. The FSM neither looks at it nor stores it.
func (e *Entry) SetMemo(v any) any {
	if e.memo.CompareAndSwap(nil, &memo{v}) {
		return v
	}
	if m := e.memo.Load(); m != nil && m.v != nil {
		return m.v
	}
	return v
}

// DropMemo forgets the memo; the next SetMemo keeps another one.
func (e *Entry) DropMemo() {
	if m := e.memo.Load(); m != nil && m != sealed {
		e.memo.CompareAndSwap(m, nil)
	}
}

// SealMemo forgets the memo and has this version keep none from now on.
func (e *Entry) SealMemo() { e.memo.Store(sealed) }

// sealed is the memo of an entry that keeps none.
var sealed = &memo{}

// Event is one change of one key.
type Event struct {
	// Index is that of the log entry that made the change.
	Index uint64
	// Old is nil when the key was created, New is nil when it was deleted.
	Old, New *Entry
}

// Key returns the key that changed.
func (e Event) Key() string {
	if e.New != nil {
		return e.New.Key
	}
	return e.Old.Key
}

// appendEntry encodes e without its memo. It is the record of results,
// snapshots and digests.
func appendEntry(dst []byte, e *Entry) []byte {
	dst = binary.AppendUvarint(dst, e.CreateIndex)
	dst = binary.AppendUvarint(dst, e.ModIndex)
	dst = binary.AppendVarint(dst, e.Expires)
	dst = appendBytes(dst, e.Key)
	return appendBytes(dst, e.Value)
}

// readEntry is the inverse of appendEntry. The Value aliases the input.
func readEntry(r *reader) *Entry {
	return &Entry{
		CreateIndex: r.uvarint(),
		ModIndex:    r.uvarint(),
		Expires:     r.varint(),
		Key:         string(r.bytes(MaxKey)),
		Value:       r.bytes(MaxValue),
	}
}
