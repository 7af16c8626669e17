package fsm

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// TestApply runs each operation against each precondition. Entries 1 to 3 made
// /r/a (created 1, now 3) and /r/b (2); the command is entry 4.
func TestApply(t *testing.T) {
	for _, test := range []struct {
		name    string
		c       Command
		code    Code
		current uint64 // ModIndex of Result.Current
		want    string
	}{
		{"create", create("/r/c", "z"), OK, 0, "/r/a=y c1 m3 /r/b=w c2 m2 /r/c=z c4 m4 "},
		{"create existing", create("/r/a", "z"), Exists, 3, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"update any", update("/r/a", "z", 0), OK, 3, "/r/a=z c1 m4 /r/b=w c2 m2 "},
		{"update expected", update("/r/a", "z", 3), OK, 3, "/r/a=z c1 m4 /r/b=w c2 m2 "},
		{"update older", update("/r/a", "z", 1), Conflict, 3, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"update newer", update("/r/a", "z", 9), Conflict, 3, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"update none", update("/r/c", "z", 0), NotFound, 0, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"update none expected", update("/r/c", "z", 2), NotFound, 0, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"delete any", remove("/r/a", 0), OK, 3, "/r/b=w c2 m2 "},
		{"delete expected", remove("/r/a", 3), OK, 3, "/r/b=w c2 m2 "},
		{"delete older", remove("/r/a", 1), Conflict, 3, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"delete none", remove("/r/c", 0), NotFound, 0, "/r/a=y c1 m3 /r/b=w c2 m2 "},
		{"delete none expected", remove("/r/c", 2), NotFound, 0, "/r/a=y c1 m3 /r/b=w c2 m2 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rec recorder
			f := New(&rec)
			apply(f, create("/r/a", "x"))
			apply(f, create("/r/b", "w"))
			apply(f, update("/r/a", "y", 1))
			rec.events = nil

			before := f.View()
			res := apply(f, test.c)
			if res.Code != test.code || res.Index != 4 || f.Index() != 4 {
				t.Errorf("got %s at %d, FSM at %d, want %s at 4", res.Code, res.Index, f.Index(), test.code)
			}
			if (res.Current == nil) != (test.current == 0) || res.Current != nil && res.Current.ModIndex != test.current {
				t.Errorf("current %+v, want one of index %d", res.Current, test.current)
			}
			got := ""
			f.View().Ascend("", "", func(e *Entry) bool {
				got += fmt.Sprintf("%s=%s c%d m%d ", e.Key, e.Value, e.CreateIndex, e.ModIndex)
				return true
			})
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkEvent(t, rec.events, before, f.View(), test.c.Key, test.code == OK)
		})
	}
}

func checkEvent(t *testing.T, events []Event, before, after *View, key string, changed bool) {
	t.Helper()
	if !changed {
		if len(events) > 0 {
			t.Errorf("events %v without a change", events)
		}
		return
	}
	old, _ := before.Get(key)
	now, _ := after.Get(key)
	if len(events) != 1 || events[0].Old != old || events[0].New != now || events[0].Index != 4 || events[0].Key() != key {
		t.Errorf("events %+v, want one from %+v to %+v", events, old, now)
	}
}

func TestBadEntriesPanic(t *testing.T) {
	good := create("/r/b", "")
	good.ID = id(99)
	for name, log := range map[string]*raft.Log{
		"entry 1 came after entry 1":          entryLog(1, good),
		"entry 0 came after entry 1":          entryLog(0, good),
		"entry 2 (0 bytes, term 0): command:": {Index: 2},
		"unknown operation 7":                 {Index: 2, Data: Command{Op: 7, ID: id(1), Key: "/a"}.Append(nil)},
		"version 9":                           {Index: 2, Data: []byte{9}},
		"unexpected type LogNoop":             {Index: 2, Type: raft.LogNoop},
	} {
		f := New()
		apply(f, create("/r/a", ""))
		mustPanic(t, name, func() { f.Apply(log) })
		if f.Index() != 1 {
			t.Errorf("%s: the index moved to %d", name, f.Index())
		}
	}
}

// TestOrder checks: swap, observe, wake; each once a batch.
func TestOrder(t *testing.T) {
	var rec recorder
	f := New(&rec)
	waiter := f.waiting.add(3)
	rec.check = func(index uint64) {
		if f.Index() != index {
			t.Errorf("told of %d with the view at %d", index, f.Index())
		}
		select {
		case <-waiter.reached:
			t.Error("woken before the observer")
		default:
		}
	}
	a, b := create("/r/a", ""), create("/r/b", "")
	a.ID, b.ID = id(1), id(2)
	responses := f.ApplyBatch([]*raft.Log{entryLog(1, a), {Index: 2, Type: raft.LogConfiguration}, entryLog(3, b)})
	<-waiter.reached
	if len(responses) != 3 || responses[1] != nil || responses[2].(Result).Index != 3 {
		t.Errorf("responses %v", responses)
	}
	waiter = f.waiting.add(4)
	if got := f.ApplyBatch([]*raft.Log{{Index: 4, Type: raft.LogConfiguration}}); len(got) != 1 || got[0] != nil {
		t.Errorf("response %v to a configuration", got)
	}
	f.ApplyBatch(nil)
	if got := fmt.Sprint(rec.indexes, len(rec.events)); got != "[3 4] 2" {
		t.Errorf("observed indexes and events %s", got)
	}
}

func TestMemo(t *testing.T) {
	e := new(Entry)
	if e.Memo() != nil {
		t.Error("memo before it was set")
	}
	if first, second := e.SetMemo("a"), e.SetMemo(2); first != "a" || second != "a" || e.Memo() != "a" {
		t.Errorf("got %v, %v, %v, want the first", first, second, e.Memo())
	}
}
