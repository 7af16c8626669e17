package fsm

import (
	"sort"
	"strings"
)

// View is the whole state as of one index, frozen. It may be kept and read by
// any number of goroutines; keeping it costs the memory of what changed since.
type View struct {
	index    uint64
	offset   uint64
	entries  *tree
	expiring *tree
	ring     []remembered
	evicted  uint64
	rewound  bool // made by Rewind: the remembered commands are missing
}

// Index returns the index of the last log entry that the view contains.
func (v *View) Index() uint64 { return v.index }

// Len returns the number of entries.
func (v *View) Len() int { return v.entries.Len() }

// Get returns the entry of key.
func (v *View) Get(key string) (*Entry, bool) {
	return v.entries.Get(&Entry{Key: key})
}

// Ascend calls fn for each entry whose key starts with prefix, in key order,
// beginning at the first key that is not less than from, until fn returns
// false. An empty from begins at the prefix.
func (v *View) Ascend(prefix, from string, fn func(*Entry) bool) {
	v.entries.Ascend(&Entry{Key: max(prefix, from)}, func(e *Entry) bool {
		return strings.HasPrefix(e.Key, prefix) && fn(e)
	})
}

// Count returns how many entries Ascend(prefix, from, ...) would visit, without
// visiting them.
func (v *View) Count(prefix, from string) int {
	end := v.Len()
	if after := prefixEnd(prefix); after != "" {
		end = v.rank(after)
	}
	return max(0, end-v.rank(max(prefix, from)))
}

// rank returns the number of keys less than key.
func (v *View) rank(key string) int {
	return sort.Search(v.Len(), func(i int) bool {
		e, _ := v.entries.GetAt(i)
		return e.Key >= key
	})
}

// prefixEnd returns the least string that is greater than all strings with this
// prefix, "" if there is none.
func prefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// AscendExpires calls fn for each entry that expires at or before until, the
// earliest first, until fn returns false.
func (v *View) AscendExpires(until int64, fn func(*Entry) bool) {
	v.expiring.Scan(func(e *Entry) bool {
		return e.Expires <= until && fn(e)
	})
}

// Rewind returns the state as of an older index, by undoing events on a copy of
// v. events are in index order; those outside (index, v.Index()] are ignored,
// and none inside may be missing. With the events of one topic only, the
// result is right for that topic only. An index at or after v's own returns v.
//
// The copy is O(1), each event costs one tree update. A rewound view knows no
// remembered commands: it is for reading, its Digest covers the entries only,
// and it cannot be written as a snapshot.
func (v *View) Rewind(index uint64, events []Event) *View {
	if index >= v.index {
		return v
	}
	entries, expiring := thaw(v.entries), thaw(v.expiring)
	for i := len(events) - 1; i >= 0; i-- {
		if ev := events[i]; index < ev.Index && ev.Index <= v.index {
			change(entries, expiring, ev.New, ev.Old)
		}
	}
	return &View{index: index, entries: entries, expiring: expiring, rewound: true}
}

// thaw returns a tree that may be written, with the contents of a frozen one.
// Copy writes to its receiver, and others may be thawing the same tree, so Copy
// is called on a private duplicate of the tree's (small) head.
func thaw(frozen *tree) *tree {
	head := *frozen
	return head.Copy()
}
