package fsm

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReadersBesideApply keeps old views and reads, rewinds and persists them on
// many goroutines while the FSM goes on. Run it with -race.
func TestReadersBesideApply(t *testing.T) {
	type kept struct {
		view   *View
		digest [32]byte
		dump   string
		past   []Event // all events so far
		older  string  // the state at half its index
	}
	var rec recorder
	s := newScenario(t, 1, 200)
	f := newFSM(50, &rec)
	dumps := map[uint64]string{0: ""}
	var old []*kept // written before stop is set to false, read after

	grow := func(n int) {
		for range n {
			index := f.Index() + 1
			f.Apply(entryLog(index, s.command(index)))
			dumps[index] = dump(f.View())
		}
		v := f.View()
		past := rec.events[:len(rec.events):len(rec.events)]
		old = append(old, &kept{v, v.Digest(), dump(v), past, dumps[v.Index()/2]})
	}
	for range 8 {
		grow(50)
	}
	var stop atomic.Bool
	var done sync.WaitGroup
	for i := range 8 {
		k := old[len(old)-1-i%2] // several goroutines to a view, one of them the newest
		done.Go(func() {
			for !stop.Load() {
				if k.view.Digest() != k.digest || dump(k.view) != k.dump {
					t.Error("a view changed")
				}
				if got := dump(k.view.Rewind(k.view.Index()/2, k.past)); got != k.older {
					t.Error("a rewound view is wrong")
				}
				var b bytes.Buffer
				if err := k.view.WriteSnapshot(&b); err != nil {
					t.Error(err)
				}
				now := f.View()
				if now.Count("/core/", "") != now.Len() {
					t.Error("count and length differ")
				}
				now.Ascend("/core/pods/", "", func(e *Entry) bool { return e.SetMemo("x") == "x" })
			}
		})
	}
	for range 20 {
		index := f.Index()
		for range 100 {
			index++
			f.Apply(entryLog(index, s.command(index)))
		}
	}
	stop.Store(true)
	done.Wait()
}

// TestRewindTogether rewinds one view on several goroutines in a tight loop. It
// fails, with -race, if rewinding writes to the view.
func TestRewindTogether(t *testing.T) {
	var rec recorder
	f := New(&rec)
	for range 3 {
		apply(f, create("/r/a", ""))
		apply(f, remove("/r/a", 0))
	}
	v := f.View()
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 20_000 {
				if v.Rewind(5, rec.events).Len() != 1 {
					t.Error("wrong state")
				}
			}
		})
	}
	done.Wait()
}
