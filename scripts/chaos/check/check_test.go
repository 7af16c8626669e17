package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kontiki/scripts/chaos/history"
)

// TestRightStore: a right store breaks no promise.
func TestRightStore(t *testing.T) {
	for seed := range uint64(20) {
		h, final := newWorld(seed, 600)
		for _, f := range All(h, final) {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
}

// TestFullDisk: a write that a full disk refuses is not told when to come back.
func TestFullDisk(t *testing.T) {
	h, final := newWorld(1, 100)
	h.Ops = append(h.Ops, history.Op{Kind: history.Set, Resource: "pods", Key: "pods/a", Value: "refused", Code: 503, Cause: diskFull, Outcome: history.Refused})
	for _, f := range All(h, final) {
		t.Error(f)
	}
}

// brokenWorld is the history of a right store, to be broken in one place.
type brokenWorld struct {
	h     *history.History
	final *Final
}

// TestBrokenStores breaks one thing at a time in what clients saw; the checker that it is meant for finds
// it. Where one cause breaks more than one promise, the others are listed, and no other.
func TestBrokenStores(t *testing.T) {
	cases := []struct {
		name   string
		breaks func(w brokenWorld)
		want   []Promise // the first one is the one meant
	}{
		{"lost write", loseWrite, []Promise{Acknowledged}},
		{"lost write at the end", loseLastWrite, []Promise{Acknowledged, Replay, FreshReads}},
		{"a refused write appears", refuseWrite, []Promise{RefusedStays, Linearizable}},
		{"an unknown write applied twice", applyTwice, []Promise{Once, Linearizable}},
		{"two writes of one version", shareVersion, []Promise{OneWriteAVersion, Linearizable}},
		{"a version that shrinks", shrinkVersion, []Promise{VersionsGrow}},
		{"a conflict with nothing", func(w brokenWorld) {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.Create, Resource: "pods", Key: "pods/new", Value: "new", Call: 1, Return: 2, Outcome: history.Refused, Code: 409})
		}, []Promise{Linearizable}},
		{"stale get", staleGet(""), []Promise{FreshReads, Linearizable}},
		{"stale list", staleList(""), []Promise{FreshReads}},
		{"time travel", timeTravel, []Promise{NoTimeTravel}},
		{"a watch ahead of a read", watchAhead, []Promise{NotAhead}},
		{"get below the version asked for", staleGet("N"), []Promise{AtLeast}},
		{"a list that shows what came later", tornList, []Promise{Replay}},
		{"a list that lacks an object", shortList, []Promise{Replay}},
		{"torn pages", tornPages, []Promise{OnePageState}},
		{"skipped event", editWatch(func(e []history.Event, i int) []history.Event { return slices.Delete(e, i, i+1) }), []Promise{Reliable}},
		{"repeated event", editWatch(func(e []history.Event, i int) []history.Event { return slices.Insert(e, i, e[i]) }), []Promise{Unique}},
		{"events out of order", editWatch(func(e []history.Event, i int) []history.Event { e[i], e[i+1] = e[i+1], e[i]; return e }), []Promise{Ordered}},
		{"wrong type", editWatch(func(e []history.Event, i int) []history.Event { e[i].Type = "ADDED"; return e }), []Promise{RightTypes}},
		{"event below a bookmark", editWatch(func(e []history.Event, i int) []history.Event {
			return slices.Insert(e, i, history.Event{At: e[i].At, Type: "BOOKMARK", RV: e[i].RV})
		}), []Promise{Bookmarked}},
		{"event below the start", func(w brokenWorld) { st := &w.h.Watches[1]; st.From = st.Events[2].RV }, []Promise{StartsAfter}},
		{"two ends of the initial events", editWatch(func(e []history.Event, i int) []history.Event {
			return slices.Insert(e, i, history.Event{At: e[i].At, Type: "BOOKMARK", RV: e[i-1].RV, Last: true})
		}), []Promise{InitialEnd}},
		{"silent watch", func(w brokenWorld) { st := &w.h.Watches[2]; st.Events = st.Events[:len(st.Events)/2] }, []Promise{NotSilent}},
		{"diverged digests", func(w brokenWorld) { w.final.Digests[1].Digest = "other" }, []Promise{SameState}},
		{"two leaders in a term", func(w brokenWorld) { w.final.Digests[1].State = "Leader" }, []Promise{OneLeader}},
		{"internal error", func(w brokenWorld) {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.List, Code: 500, Outcome: history.Unknown})
		}, []Promise{SoundAnswers}},
		{"503 with no Retry-After", func(w brokenWorld) {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.List, Code: 503, Outcome: history.Refused})
		}, []Promise{SoundAnswers}},
		{"a read that a full disk refuses", func(w brokenWorld) {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.List, Code: 503, Cause: diskFull, Outcome: history.Refused})
		}, []Promise{SoundAnswers}},
		{"late answer", func(w brokenWorld) {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.List, Code: 504, Outcome: history.Unknown, RetryIn: "1", Return: 60e9})
		}, []Promise{SoundAnswers}},
		{"silence that nobody is told of", func(w brokenWorld) {
			for i := range int64(8) {
				w.h.Digests = append(w.h.Digests, history.Digest{At: 100e9 + i*500e6, Node: "alone", Index: 1e6, Term: 9})
			}
			w.h.Ops = append(w.h.Ops,
				history.Op{Kind: history.List, Resource: "nodes", Node: "alone", Asked: "0", Outcome: history.OK, Call: 101.1e9, Return: 101.2e9},
				history.Op{Kind: history.List, Resource: "nodes", Node: "alone", Asked: "0", Outcome: history.OK, Call: 101.3e9, Return: 101.4e9, Warning: "no leader"})
		}, []Promise{Warned}},
	}
	tested := make(map[Promise]bool)
	for _, c := range cases {
		tested[c.want[0]] = true
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				h, final := newWorld(seed, 600)
				c.breaks(brokenWorld{h, &final})
				found := All(h, final)
				broken := map[Promise]bool{}
				for _, f := range found {
					broken[f.Promise] = true
					if !slices.Contains(c.want, f.Promise) {
						t.Errorf("seed %d: also %s", seed, f)
					}
				}
				if !broken[c.want[0]] {
					t.Errorf("seed %d: not found; want %q, found %v", seed, c.want[0], found)
				}
			}
		})
	}
	for _, p := range promises() {
		if !tested[p] {
			t.Errorf("nothing here breaks %q", p)
		}
	}
	if len(promises()) != len(checkers) {
		t.Errorf("%d promises, %d checkers", len(promises()), len(checkers))
	}
}

func promises() []Promise {
	return []Promise{
		OneWriteAVersion, Acknowledged, RefusedStays, Once, VersionsGrow, Linearizable, FreshReads, NoTimeTravel, AtLeast, Replay, OnePageState,
		Ordered, Unique, Reliable, Bookmarked, StartsAfter, RightTypes, InitialEnd, NotAhead, NotSilent, SameState, OneLeader, SoundAnswers, Warned,
	}
}

// forget takes a version out of everything that anybody but its writer saw.
func (w brokenWorld) forget(rv uint64) {
	for i := range w.h.Watches {
		w.h.Watches[i].Events = slices.DeleteFunc(w.h.Watches[i].Events, func(e history.Event) bool { return e.Type != "BOOKMARK" && e.RV == rv })
	}
	w.h.Ops = slices.DeleteFunc(w.h.Ops, func(op history.Op) bool {
		return !op.Writes() && (op.RV == rv || op.Pages != 0 || slices.ContainsFunc(op.Items, func(item history.Item) bool { return item.RV == rv }))
	})
}

func acked(kinds ...history.Kind) func(*history.Op) bool {
	return func(op *history.Op) bool {
		return slices.Contains(kinds, op.Kind) && op.Outcome == history.OK && op.RV > 20
	}
}

// followed tells writes that another one of the same key was put on top of, with nothing between: what
// came before it was of the same kind of state.
func (w brokenWorld) followed(kinds ...history.Kind) *history.Op {
	s := tell(w.h, *w.final)
	return w.op(func(op *history.Op) bool {
		next, before := s.after(op.Key, op.RV), s.at(op.Key, op.RV-1)
		return acked(kinds...)(op) && next != nil && !next.deleted && next.kind == "MODIFIED" && before != nil && before.kind != "DELETED"
	})
}

func loseWrite(w brokenWorld) {
	op := w.followed(history.Set, history.Update)
	w.forget(op.RV)
}

func loseLastWrite(w brokenWorld) {
	ends := w.final.Lists[0].Items
	item := ends[len(ends)-1]
	for i := range w.final.Lists {
		w.final.Lists[i].Items = slices.DeleteFunc(slices.Clone(w.final.Lists[i].Items), func(other history.Item) bool { return other.Key == item.Key })
	}
	w.h.Ops = slices.DeleteFunc(w.h.Ops, func(op history.Op) bool {
		return op.Kind == history.Delete && op.Key == item.Key && op.Outcome == history.Unknown
	})
	for i := range w.h.Ops { // whatever wrote it, it was acknowledged
		if op := &w.h.Ops[i]; op.Value == item.Value && op.Writes() {
			op.Outcome, op.Code, op.RV = history.OK, 200, item.RV
		}
	}
}

func refuseWrite(w brokenWorld) {
	op := w.op(acked(history.Set, history.Update))
	op.Outcome, op.Code, op.RV = history.Refused, 409, 0
}

func applyTwice(w brokenWorld) {
	s := tell(w.h, *w.final)
	// A later state of the same key becomes that of the unknown write once more.
	first := w.op(func(op *history.Op) bool {
		next := s.after(op.Key, op.RV)
		return acked(history.Update, history.Set)(op) && next != nil && next.kind == "MODIFIED"
	})
	next := s.after(first.Key, first.RV)
	w.rename(next.value, first.Value)
	w.h.Ops = slices.DeleteFunc(w.h.Ops, func(op history.Op) bool {
		return op.Writes() && op.Value == first.Value && op.ID != first.ID || op.Key == first.Key && op.Kind != history.List
	})
	w.h.Ops = append(w.h.Ops, history.Op{ID: first.ID, Kind: history.Set, Key: first.Key, Resource: "pods", Value: first.Value, Outcome: history.Unknown, Call: 1, Return: 2})
	w.known()
}

// known has a writer for every value: those whose call is gone.
func (w brokenWorld) known() {
	s := tell(w.h, *w.final)
	for value, places := range s.values {
		if s.writers[value] == nil {
			w.h.Ops = append(w.h.Ops, history.Op{Kind: history.Set, Key: places[0].key, Resource: "pods", Value: value, Outcome: history.Unknown, Call: 1, Return: 2})
		}
	}
	for key := range s.keys {
		w.h.Ops = append(w.h.Ops, history.Op{Kind: history.Delete, Key: key, Resource: "pods", Outcome: history.Unknown, Call: 1, Return: 2})
	}
}

func (w brokenWorld) rename(from, to string) {
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; op.Value == from {
			op.Value = to
		}
		for j := range w.h.Ops[i].Items {
			if item := &w.h.Ops[i].Items[j]; item.Value == from {
				item.Value = to
			}
		}
	}
	for i := range w.h.Watches {
		for j := range w.h.Watches[i].Events {
			if e := &w.h.Watches[i].Events[j]; e.Value == from {
				e.Value = to
			}
		}
	}
}

func shareVersion(w brokenWorld) {
	op := w.op(func(op *history.Op) bool { return op.Kind == history.Get && op.Outcome == history.OK && op.Asked == "" })
	op.Value = w.op(acked(history.Create)).Value
	if strings.TrimSpace(op.Value) == "" {
		panic("no value")
	}
}

func shrinkVersion(w brokenWorld) {
	w.h.Ops = []history.Op{
		{ID: 1, Kind: history.Create, Resource: "pods", Key: "pods/a", Value: "a", Call: 1, Return: 2, Outcome: history.OK, RV: 5},
		{ID: 2, Kind: history.Create, Resource: "pods", Key: "pods/b", Value: "b", Call: 3, Return: 4, Outcome: history.OK, RV: 4},
	}
	w.h.Watches, *w.final = nil, Final{}
}

// staleGet makes a get show what was there before.
func staleGet(asked string) func(w brokenWorld) {
	return func(w brokenWorld) {
		s := tell(w.h, *w.final)
		fits := func(op *history.Op) bool {
			before := s.at(op.Key, op.RV-1)
			number := op.Asked != "" && op.Asked != "0"
			return op.Kind == history.Get && op.Outcome == history.OK && number == (asked != "") && op.Asked != "0" && before != nil && !before.deleted
		}
		op := w.op(fits)
		before := s.at(op.Key, op.RV-1)
		op.RV, op.Value = before.rv, before.value
	}
}

func staleList(asked string) func(w brokenWorld) {
	return func(w brokenWorld) {
		old := w.op(func(op *history.Op) bool { return op.Kind == history.List && op.RV < 30 && op.Pages == 0 })
		op := w.op(func(op *history.Op) bool {
			return op.Kind == history.List && op.Asked == asked && op.Pages == 0 && op.RV > 60
		})
		op.RV, op.Items = old.RV, old.Items
	}
}

func timeTravel(w brokenWorld) {
	for i := range w.h.Watches { // one that is not there shows nothing
		w.h.Watches[i].Node = "n9"
	}
	staleList("0")(w)
}

func watchAhead(w brokenWorld) {
	op := w.op(func(op *history.Op) bool {
		return op.Kind == history.List && op.Asked == "0" && op.RV > 30 && op.RV < w.final.Lists[0].RV
	})
	for i := range w.h.Watches {
		if st := &w.h.Watches[i]; st.Node == op.Node && st.Initial {
			for j := range st.Events { // all of its events came before anything was read
				st.Events[j].At = 1
			}
		}
	}
}

func tornList(w brokenWorld) {
	s := tell(w.h, *w.final)
	for i := len(w.h.Ops) - 10; i >= 0; i-- {
		op := &w.h.Ops[i]
		if op.Kind != history.List || op.Pages != 0 {
			continue
		}
		for j, item := range op.Items {
			if next := s.after(item.Key, item.RV); next != nil && !next.deleted {
				op.Items = slices.Clone(op.Items)
				op.Items[j].RV, op.Items[j].Value = next.rv, next.value
				return
			}
		}
	}
	panic("no list to tear")
}

func shortList(w brokenWorld) {
	op := w.op(func(op *history.Op) bool {
		return op.Kind == history.List && op.Pages == 0 && len(op.Items) > 1 && op.RV < w.final.Lists[0].RV
	})
	op.Items = op.Items[1:]
}

func tornPages(w brokenWorld) {
	op := w.op(func(op *history.Op) bool { return op.Pages != 0 && op.Pages != op.ID })
	op.RV++
}

// editWatch changes a whole watch at an event that is a change, and whose next one is too.
func editWatch(edit func(events []history.Event, i int) []history.Event) func(w brokenWorld) {
	return func(w brokenWorld) {
		watch := &w.h.Watches[2]
		for i := len(watch.Events) / 2; ; i++ {
			if watch.Events[i].Type == "MODIFIED" && watch.Events[i+1].Type == "MODIFIED" {
				watch.Events = edit(slices.Clone(watch.Events), i)
				return
			}
		}
	}
}

// TestUnknown: an unknown write may have happened or not, and a delete whose version nobody knows did.
func TestUnknown(t *testing.T) {
	for happened := range 2 {
		h := &history.History{Ops: []history.Op{
			{ID: 1, Kind: history.Create, Resource: "pods", Key: "pods/a", Value: "w1", Call: 1, Return: 2, Outcome: history.OK, RV: 1},
			{ID: 2, Kind: history.Update, Resource: "pods", Key: "pods/a", Value: "w2", Asked: "1", Call: 3, Return: 4, Outcome: history.Unknown},
			{ID: 3, Kind: history.Get, Resource: "pods", Key: "pods/a", Value: fmt.Sprint("w", happened+1), RV: uint64(happened + 1), Call: 5, Return: 6, Outcome: history.OK},
			{ID: 4, Kind: history.Delete, Resource: "pods", Key: "pods/a", Call: 7, Return: 8, Outcome: history.OK},
			{ID: 5, Kind: history.Get, Resource: "pods", Key: "pods/a", Call: 9, Return: 10, Outcome: history.Refused, Code: 404},
		}}
		if found := All(h, Final{}); len(found) > 0 {
			t.Errorf("happened %d: %v", happened, found)
		}
		h.Ops = append(h.Ops[:3], h.Ops[4:]...)
		if found := All(h, Final{}); len(found) == 0 {
			t.Errorf("happened %d: an object that vanished was not missed", happened)
		}
	}
}
