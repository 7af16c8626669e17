package fsm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
)

// model is the FSM as one would explain it, without any of its means.
type model struct {
	entries map[string]Event // New of the last event is the entry
	done    []Result         // of remembered commands, oldest first
	ids     []ID
	limit   int
	evicted uint64
}

func (m *model) apply(index uint64, c Command) Result {
	if i := slices.Index(m.ids, c.ID); i >= 0 {
		return m.done[i]
	}
	if c.Base < m.evicted {
		return Result{Code: Forgotten, Index: index}
	}
	r := Result{Code: OK, Index: index}
	old, there := m.entries[c.Key]
	switch {
	case c.Op == OpCreate && there:
		r.Code = Exists
	case c.Op != OpCreate && !there:
		r.Code = NotFound
	case c.Op != OpCreate && c.Expect != 0 && c.Expect != old.New.ModIndex:
		r.Code = Conflict
	}
	m.ids, m.done = append(m.ids, c.ID), append(m.done, r)
	if len(m.ids) > m.limit {
		m.evicted = m.done[0].Index
		m.ids, m.done = m.ids[1:], m.done[1:]
	}
	if r.Code != OK {
		return r
	}
	created := index
	if there {
		created = old.New.CreateIndex
	}
	m.entries[c.Key] = Event{New: &Entry{Key: c.Key, Value: c.Value, CreateIndex: created, ModIndex: index, Expires: c.Expires}}
	if c.Op == OpDelete {
		delete(m.entries, c.Key)
	}
	return r
}

// check compares every way to read v with the model.
func (m *model) check(t *testing.T, v *View) {
	t.Helper()
	if v.Len() != len(m.entries) {
		t.Fatalf("index %d: %d entries, want %d", v.Index(), v.Len(), len(m.entries))
	}
	expiring := 0
	for key, want := range m.entries {
		got, ok := v.Get(key)
		if !ok || !reflect.DeepEqual(got, want.New) {
			t.Fatalf("index %d: got %+v, want %+v", v.Index(), got, want.New)
		}
		if got.Expires > 0 && got.Expires <= 5 {
			expiring++
		}
	}
	last := int64(0)
	v.AscendExpires(5, func(e *Entry) bool {
		if e.Expires < last {
			t.Fatalf("index %d: expiry %d after %d", v.Index(), e.Expires, last)
		}
		last = e.Expires
		expiring--
		return true
	})
	if expiring != 0 {
		t.Fatalf("index %d: %d expiring entries too few", v.Index(), expiring)
	}
	m.checkRange(t, v, "/core/pods/", "/core/pods/01")
	m.checkRange(t, v, "/core/", "")
	m.checkRange(t, v, "/core/nodes/", "/core/a")
	m.checkRange(t, v, "/core/nodes/", "/core/pods/")
	m.checkRange(t, v, "", "/core/nodes/015")
}

func (m *model) checkRange(t *testing.T, v *View, prefix, from string) {
	t.Helper()
	var want, got []string
	for key := range m.entries {
		if len(key) >= len(prefix) && key[:len(prefix)] == prefix && key >= from {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	v.Ascend(prefix, from, func(e *Entry) bool {
		got = append(got, e.Key)
		return true
	})
	if !slices.Equal(got, want) || v.Count(prefix, from) != len(want) {
		t.Fatalf("index %d: prefix %q from %q: got %v, count %d, want %v", v.Index(), prefix, from, got, v.Count(prefix, from), want)
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		s := newScenario(t, seed, 30)
		f := newFSM(40)
		m := &model{entries: map[string]Event{}, limit: 40}
		codes := map[Code]int{}
		for _, log := range s.log(1000) {
			res, _ := f.Apply(log).(Result)
			if log.Type == raft.LogCommand {
				c, _ := DecodeCommand(log.Data)
				want := m.apply(log.Index, c)
				if res.Code != want.Code || res.Index != want.Index {
					t.Fatalf("entry %d %+v: got %+v, want %+v", log.Index, c, res, want)
				}
				codes[res.Code]++
			}
			if f.Index() != log.Index {
				t.Fatalf("index %d after entry %d", f.Index(), log.Index)
			}
			m.check(t, f.View())
		}
		if len(codes) != len(codeNames) {
			t.Errorf("the log provokes only %v", codes)
		}
	}
}

// TestTwin feeds the same log in two ways and wants the same of everything.
func TestTwin(t *testing.T) {
	for seed := range uint64(20) {
		s := newScenario(t, seed, 30)
		logs := s.log(1000)
		var left, right recorder
		a, b := newFSM(100, &left), newFSM(100, &right)
		one, many := s.feed(a, logs, 1), s.feed(b, logs, 64)
		if a.View().Digest() != b.View().Digest() || a.Index() != b.Index() {
			t.Error("digests differ")
		}
		for i := range logs {
			if !reflect.DeepEqual(one[i], many[i]) {
				t.Fatalf("entry %d: responses %+v and %+v", logs[i].Index, one[i], many[i])
			}
		}
		if !reflect.DeepEqual(left.events, right.events) {
			t.Error("events differ")
		}
	}
}

// TestCut restores a snapshot from a random place into another FSM, goes on
// with both, and wants the same of everything.
func TestCut(t *testing.T) {
	for seed := range uint64(20) {
		s := newScenario(t, seed, 30)
		logs := s.log(1000)
		cut := s.rand.IntN(len(logs))
		whole, before, after := newFSM(100), newFSM(100), newFSM(100)
		s.feed(whole, logs, 64)
		s.feed(before, logs[:cut], 64)
		s.feed(after, logs[:s.rand.IntN(cut+1)], 64) // a state to be replaced
		mustRestore(t, after, persist(t, before))
		if after.Index() != before.Index() || after.View().Digest() != before.View().Digest() {
			t.Fatalf("restored index %d, want %d, or digests differ", after.Index(), before.Index())
		}
		s.feed(after, logs[cut:], 64)
		if after.View().Digest() != whole.View().Digest() || dump(after.View()) != dump(whole.View()) {
			t.Errorf("cut at %d: digests differ", cut)
		}
	}
}
