package fsm

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
)

// staging makes the log entries that restore a snapshot, in pieces of a few
// bytes, from index on.
func staging(index uint64, name string, snapshot []byte) (logs []*raft.Log) {
	for at := 0; at < len(snapshot); at += 37 {
		piece := snapshot[at:min(at+37, len(snapshot))]
		key := fmt.Sprintf("%s%s/%08d", StagingPrefix, name, at)
		logs = append(logs, entryLog(index, Command{Op: OpCreate, ID: id(1<<40 + index), Base: index - 1, Key: key, Value: piece, Expires: 99}))
		index++
	}
	return append(logs, entryLog(index, Command{Op: OpRestore, ID: id(1<<40 + index), Base: index - 1, Key: StagingPrefix + name + "/"}))
}

// TestReplace restores an old backup into a state that went on, in one batch
// and in many: the content is the old one, its index is newer than all.
func TestReplace(t *testing.T) {
	backup := persist(t, sample())
	for _, most := range []int{1, 7, 1000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			var rec recorder
			f := newFSM(1000, &rec)
			s := newScenario(t, 1, 30)
			logs := staging(100, "x", backup)
			logs = append(logs, entryLog(200, create("/core/pods/ns/later", "six").withID(77)))
			s.feed(f, append(s.log(30), logs...), most)

			at := uint64(7 + RestoreGap)
			after := at + 200 - logs[len(logs)-2].Index
			want := fmt.Sprintf(`/core/events/ns/e=five c%[1]d m%[1]d x1700000000
/core/nodes/n=three c%[1]d m%[1]d x0
/core/pods/ns/a=four c%[1]d m%[1]d x0
/core/pods/ns/later=six c%[2]d m%[2]d x0
1700000000 /core/events/ns/e
`, at, after)
			if got := dump(f.View()); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if !reflect.DeepEqual(rec.restored, []uint64{at}) || f.Index() != after {
				t.Errorf("restored at %v, index %d, want %d and %d", rec.restored, f.Index(), at, after)
			}
			if last := rec.events[len(rec.events)-1]; last.Index != after || last.New == nil {
				t.Errorf("the last event is %+v, want the create at %d", last, after)
			}
			testReplaced(t, f, logs[len(logs)-2])
		})
	}
}

// testReplaced goes on after a restore: a retry of it, a snapshot of it, a log
// that is replayed after that snapshot.
func testReplaced(t *testing.T, f *FSM, restored *raft.Log) {
	digest, index := f.View().Digest(), f.Index()
	again := f.Apply(&raft.Log{Index: 201, Type: raft.LogCommand, Data: restored.Data}).(Result)
	if again.Code != OK || again.Index != 7+RestoreGap || f.View().Digest() != digest {
		t.Errorf("a retry got %+v, or changed the state", again)
	}
	g := newFSM(1000)
	mustRestore(t, g, persist(t, f))
	if g.Index() != index+1 || g.View().Digest() != digest {
		t.Errorf("a snapshot gives index %d, want %d, or another digest", g.Index(), index+1)
	}
	next := entryLog(300, create("/core/pods/ns/z", "").withID(78))
	for _, machine := range []*FSM{f, g} {
		if r := machine.Apply(next).(Result); r.Code != OK || r.Index != index+100 {
			t.Errorf("entry 300 got %+v, want index %d", r, index+100)
		}
	}
	if f.View().Digest() != g.View().Digest() {
		t.Error("digests differ after a snapshot")
	}
}

// TestReplaceNewer restores into a state that is far ahead of the backup: the
// index goes on from there.
func TestReplaceNewer(t *testing.T) {
	f := newFSM(1000)
	at := uint64(7 + 2*RestoreGap)
	logs := staging(at, "x", persist(t, sample()))
	f.ApplyBatch(logs)
	last := logs[len(logs)-1].Index
	if e, ok := f.View().Get("/core/nodes/n"); !ok || e.ModIndex != last || f.Index() != last {
		t.Errorf("got %+v at index %d, want one of %d", e, f.Index(), last)
	}
}

// TestReplaceTwice: a backup that holds the remains of a restore leaves them
// out, and every restore is newer than the one before.
func TestReplaceTwice(t *testing.T) {
	f := newFSM(1000)
	logs := staging(1, "first", persist(t, sample()))
	f.ApplyBatch(logs[:3])
	backup := persist(t, f)
	f.ApplyBatch(staging(500, "second", backup))
	if f.View().Len() != 0 || f.Index() != 3+RestoreGap {
		t.Errorf("%d entries at %d, want none at %d", f.View().Len(), f.Index(), 3+RestoreGap)
	}
	f.ApplyBatch(staging(600, "third", persist(t, f)))
	if f.Index() != 3+2*RestoreGap {
		t.Errorf("index %d, want %d", f.Index(), 3+2*RestoreGap)
	}
}

// TestReplaceRefused leaves out or spoils a piece: nothing changes.
func TestReplaceRefused(t *testing.T) {
	logs := staging(1, "x", persist(t, sample()))
	last := len(logs) - 1
	for spoiled := range last {
		for _, spoil := range []string{"missing", "flipped"} {
			var rec recorder
			f := newFSM(1000, &rec)
			for i, log := range logs[:last] {
				c, _ := DecodeCommand(log.Data)
				if i == spoiled && spoil == "missing" {
					continue
				}
				if i == spoiled {
					c.Value = append([]byte(nil), c.Value...)
					c.Value[0] ^= 1
				}
				f.Apply(entryLog(log.Index, c))
			}
			before := dump(f.View())
			if r := f.Apply(logs[last]).(Result); r.Code != NotFound || dump(f.View()) != before || rec.restored != nil || f.Index() != logs[last].Index {
				t.Errorf("piece %d %s: got %+v, restored %v, or the state changed", spoiled, spoil, r, rec.restored)
			}
		}
	}
}

// TestRestoreNeverFalls: raft does not replace a state by an older one.
func TestRestoreNeverFalls(t *testing.T) {
	f := newFSM(5)
	old := persist(t, f)
	apply(f, create("/r/a", ""))
	view := f.View()
	if err := restore(f, old); err == nil || f.View() != view {
		t.Errorf("error %v, index %d: an older snapshot was taken", err, f.Index())
	}
}

// withID gives c an id that no other command of the test has.
func (c Command) withID(n uint64) Command {
	c.ID = id(1<<50 + n)
	c.Base = 1 << 62
	return c
}

// TestRenew: the content stays, every index is new, and the log goes on.
func TestRenew(t *testing.T) {
	f := sample()
	f.Renew()
	at := uint64(7 + RestoreGap)
	g := newFSM(5)
	mustRestore(t, g, persist(t, f))
	f.View().Ascend("", "", func(e *Entry) bool {
		if e.ModIndex != at || e.CreateIndex != at {
			t.Errorf("%+v, want one of %d", e, at)
		}
		return true
	})
	if f.View().Len() != 3 || f.Index() != at || g.View().Digest() != f.View().Digest() {
		t.Errorf("%d entries at %d, or a snapshot differs", f.View().Len(), f.Index())
	}
	if r := g.Apply(entryLog(8, create("/r/a", "").withID(1))).(Result); r.Code != OK || r.Index != at+1 {
		t.Errorf("the next entry got %+v, want index %d", r, at+1)
	}
}
