package fsm

import (
	"github.com/tidwall/btree"
)

// tree is the copy-on-write ordered set that holds the entries. Its nodes carry
// the identity of the tree that made them, and a tree writes only into nodes of
// its own identity. Copy shares the root and gives *both* sides a new identity,
// so from then on neither writes what the other can see. Copy itself writes to
// its receiver: only the owner of a tree may call it (see View.thaw).
type tree = btree.BTreeG[*Entry]

func newTree(less func(a, b *Entry) bool) *tree {
	// No locks: one goroutine writes, and what others read is frozen.
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

func byKey(a, b *Entry) bool { return a.Key < b.Key }

func byExpiry(a, b *Entry) bool {
	if a.Expires != b.Expires {
		return a.Expires < b.Expires
	}
	return a.Key < b.Key
}

// state is the mutable state. Only the FSM goroutine touches it.
type state struct {
	entries  *tree // all entries by key
	expiring *tree // the entries with Expires != 0, by expiry and key
	memory   memory
	offset   uint64 // an entry's index here is raft's plus this
	pivot    Entry  // scratch for look-ups
}

func newState(limit int) *state {
	return &state{
		entries:  newTree(byKey),
		expiring: newTree(byExpiry),
		memory:   newMemory(limit),
	}
}

func (s *state) get(key string) *Entry {
	s.pivot.Key = key
	e, _ := s.entries.Get(&s.pivot)
	return e
}

// apply decides and executes one command. The event is meaningful only if the
// state changed.
func (s *state) apply(index uint64, c Command) (res Result, ev Event, changed bool) {
	if first, ok := s.memory.find(c.ID); ok {
		return Result{Code: first.code, Index: first.index}, ev, false
	}
	if s.memory.mayHaveForgotten(c.Base) {
		return Result{Code: Forgotten, Index: index}, ev, false
	}
	if c.Op == OpRestore {
		res = s.replace(index, c.Key)
		s.memory.add(remembered{id: c.ID, index: res.Index, code: res.Code})
		return res, ev, res.Code == OK
	}
	old := s.get(c.Key)
	res = Result{Code: decide(c, old), Index: index, Current: old}
	s.memory.add(remembered{id: c.ID, index: index, code: res.Code})
	if res.Code != OK {
		return res, ev, false
	}
	ev = Event{Index: index, Old: old, New: newEntry(index, c, old)}
	s.change(ev.Old, ev.New)
	return res, ev, true
}

// decide compares the precondition of c with the entry that its key has now.
func decide(c Command, old *Entry) Code {
	switch {
	case c.Op == OpCreate && old != nil:
		return Exists
	case c.Op == OpCreate:
		return OK
	case old == nil:
		return NotFound
	case c.Expect != 0 && c.Expect != old.ModIndex:
		return Conflict
	}
	return OK
}

// newEntry is the version that c makes, nil for a delete.
func newEntry(index uint64, c Command, old *Entry) *Entry {
	if c.Op == OpDelete {
		return nil
	}
	e := &Entry{Key: c.Key, Value: c.Value, CreateIndex: index, ModIndex: index, Expires: c.Expires}
	if old != nil {
		e.Key, e.CreateIndex = old.Key, old.CreateIndex // one string for all versions of a key
	}
	return e
}

// change replaces old by new in both trees; either may be nil.
func (s *state) change(old, new *Entry) { change(s.entries, s.expiring, old, new) }

func change(entries, expiring *tree, old, new *Entry) {
	if old != nil && old.Expires != 0 {
		expiring.Delete(old)
	}
	if new == nil {
		entries.Delete(old)
		return
	}
	entries.Set(new)
	if new.Expires != 0 {
		expiring.Set(new)
	}
}

// freeze makes the view of index. When nothing changed since prev it shares
// prev's trees, which spares the next write from copying their nodes again; prev
// is nil when something did.
func (s *state) freeze(index uint64, prev *View) *View {
	v := &View{index: index, offset: s.offset, ring: s.memory.ring, evicted: s.memory.evicted}
	if prev == nil {
		v.entries, v.expiring = s.entries.Copy(), s.expiring.Copy()
	} else {
		v.entries, v.expiring = prev.entries, prev.expiring
	}
	return v
}
