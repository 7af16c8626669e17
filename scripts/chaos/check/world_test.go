package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"kontiki/scripts/chaos/history"
)

// world is a right store of three nodes that apply one log, each at its own pace, with clients that record
// what they see. Its clock goes on with every step, so that the same seed is the same history.
type world struct {
	rng     *rand.Rand
	clock   int64
	ids     uint64
	log     []entry // log[i] is version i+1
	applied map[string]uint64
	watches []*history.Watch
	at      map[uint64]uint64 // a watch's position
	h       history.History
}

type entry struct {
	key, value string
	deleted    bool
}

var worldNodes = []string{"n1", "n2", "n3"}

// newWorld lives for a while.
func newWorld(seed uint64, steps int) (*history.History, Final) {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), applied: make(map[string]uint64), at: make(map[uint64]uint64)}
	for _, node := range worldNodes {
		w.watch(node, "", true, 0)
		w.watch(node, "pods/k1", false, 2) // in the future
	}
	for range steps {
		w.step()
	}
	for _, node := range worldNodes { // the end: all are up to date
		w.applied[node] = w.now()
		w.deliver()
	}
	var final Final
	for _, node := range worldNodes {
		w.read(node, history.List, "")
		final.Lists = append(final.Lists, w.h.Ops[len(w.h.Ops)-1])
		w.digest(node)
		final.Digests = append(final.Digests, w.h.Digests[len(w.h.Digests)-1])
	}
	for _, watch := range w.watches {
		watch.Owed = w.now()
		watch.Events = append(watch.Events, history.Event{At: w.tick(), Type: "BOOKMARK", RV: w.now()})
		w.h.Watches = append(w.h.Watches, *watch)
	}
	return &w.h, final
}

func (w *world) now() uint64 { return uint64(len(w.log)) }

func (w *world) tick() int64 { w.clock++; return w.clock }

func (w *world) id() uint64 { w.ids++; return w.ids }

// state is what a key holds at a version.
func (w *world) state(key string, rv uint64) (value string, at uint64) {
	for i := rv; i > 0; i-- {
		if e := w.log[i-1]; e.key == key {
			if e.deleted {
				return "", 0
			}
			return e.value, i
		}
	}
	return "", 0
}

func (w *world) step() {
	node := worldNodes[w.rng.IntN(3)]
	w.applied[node] = min(w.now(), w.applied[node]+w.rng.Uint64N(4))
	w.deliver()
	key := "pods/k" + strconv.Itoa(w.rng.IntN(6))
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		w.write(node, key)
	case 4:
		w.read(node, history.List, []string{"", "0"}[w.rng.IntN(2)])
	case 5:
		w.pages(node)
	case 6:
		w.digest(node)
	default:
		w.get(node, key, []string{"", "0", strconv.FormatUint(w.now(), 10)}[w.rng.IntN(3)])
	}
}

// write is one of the kinds of write, whatever fits: some are refused, some are lost on the way or back.
func (w *world) write(node, key string) {
	value, rv := w.state(key, w.now())
	op := history.Op{ID: w.id(), Client: "c", Node: node, Key: key, Resource: "pods", Call: w.tick(), Outcome: history.OK, Code: 200}
	op.Kind = []history.Kind{history.Create, history.Update, history.Update, history.Set, history.Delete}[w.rng.IntN(5)]
	if op.Kind != history.Delete {
		op.Value = fmt.Sprintf("w%d", op.ID)
	}
	if op.Kind == history.Update {
		op.Asked = strconv.FormatUint(rv-min(rv, w.rng.Uint64N(2)), 10)
	}
	exists := value != ""
	switch {
	case op.Kind == history.Create && exists, op.Kind == history.Update && (!exists || op.Asked != strconv.FormatUint(rv, 10)):
		op.Outcome, op.Code = history.Refused, 409
	case op.Kind != history.Create && !exists:
		op.Outcome, op.Code = history.Refused, 404
	case w.rng.IntN(12) == 0:
		op.Outcome, op.Code, op.RetryIn = history.Unknown, 504, "1"
	}
	if op.Outcome == history.OK || op.Outcome == history.Unknown && w.rng.IntN(2) == 0 {
		w.log = append(w.log, entry{key, op.Value, op.Kind == history.Delete})
		w.applied[node] = w.now()
		w.deliver()
	}
	if op.Outcome == history.OK {
		op.RV = w.now()
	}
	op.Return = w.tick()
	w.h.Ops = append(w.h.Ops, op)
}

// index is what a node serves a read from.
func (w *world) index(node, asked string) uint64 {
	n, _ := strconv.ParseUint(asked, 10, 64)
	switch {
	case asked == "":
		w.applied[node] = w.now()
	case n > w.applied[node]:
		w.applied[node] = n
	}
	return w.applied[node]
}

func (w *world) get(node, key, asked string) {
	op := history.Op{ID: w.id(), Client: "c", Node: node, Kind: history.Get, Key: key, Resource: "pods", Call: w.tick(), Asked: asked, Outcome: history.OK, Code: 200}
	if op.Value, op.RV = w.state(key, w.index(node, asked)); op.RV == 0 {
		op.Outcome, op.Code = history.Refused, 404
	}
	op.Return = w.tick()
	w.h.Ops = append(w.h.Ops, op)
}

func (w *world) items(rv uint64) (items []history.Item) {
	for i := range 6 {
		key := "pods/k" + strconv.Itoa(i)
		if value, at := w.state(key, rv); at > 0 {
			items = append(items, history.Item{Key: key, RV: at, Value: value})
		}
	}
	return items
}

func (w *world) read(node string, kind history.Kind, asked string) {
	op := history.Op{ID: w.id(), Client: "c", Node: node, Kind: kind, Resource: "pods", Call: w.tick(), Asked: asked, Outcome: history.OK, Code: 200}
	op.RV = w.index(node, asked)
	op.Items, op.Return = w.items(op.RV), w.tick()
	w.h.Ops = append(w.h.Ops, op)
}

// pages lists in pages of two, with a write in between, the later ones on another node.
func (w *world) pages(node string) {
	w.read(node, history.List, "")
	whole := w.h.Ops[len(w.h.Ops)-1]
	w.h.Ops = w.h.Ops[:len(w.h.Ops)-1]
	for items := whole.Items; ; {
		n := min(2, len(items))
		page := whole
		page.ID, page.Pages, page.Items, page.Limit = w.id(), whole.ID, items[:n], 2
		if n = len(page.Items); len(items) == len(whole.Items) {
			page.ID = whole.ID
		}
		page.Call, page.Return, page.More = w.tick(), w.tick(), len(items) > n
		w.h.Ops = append(w.h.Ops, page)
		if items = items[n:]; len(items) == 0 {
			return
		}
		w.write("n1", "pods/k"+strconv.Itoa(w.rng.IntN(6)))
		whole.Node = worldNodes[w.rng.IntN(3)]
		w.applied[whole.Node] = max(w.applied[whole.Node], whole.RV)
		w.deliver()
	}
}

func (w *world) digest(node string) {
	state := "Follower"
	if node == "n1" {
		state = "Leader"
	}
	w.h.Digests = append(w.h.Digests, history.Digest{
		At: w.tick(), Node: node, Index: w.applied[node], Digest: fmt.Sprint("d", w.applied[node]), Term: 3, State: state, Leader: "n1",
	})
}

func (w *world) watch(node, key string, initial bool, from uint64) {
	watch := &history.Watch{ID: w.id(), Client: "w", Node: node, Resource: "pods", Key: key, Call: w.tick(), From: from, Initial: initial}
	if initial {
		watch.Events = append(watch.Events, history.Event{At: w.tick(), Type: "BOOKMARK", RV: w.applied[node], Last: true})
	}
	w.at[watch.ID] = from
	w.watches = append(w.watches, watch)
}

// deliver sends every watch what its node has applied, and a bookmark now and then.
func (w *world) deliver() {
	for _, watch := range w.watches {
		for w.at[watch.ID] < w.applied[watch.Node] {
			w.at[watch.ID]++
			rv := w.at[watch.ID]
			if e := w.log[rv-1]; watch.Key == "" || watch.Key == e.key {
				watch.Events = append(watch.Events, w.event(e, rv))
			}
			if rv%10 == 0 {
				watch.Events = append(watch.Events, history.Event{At: w.tick(), Type: "BOOKMARK", RV: rv})
			}
		}
	}
}

func (w *world) event(e entry, rv uint64) history.Event {
	before, at := w.state(e.key, rv-1)
	event := history.Event{At: w.tick(), Type: "MODIFIED", Key: e.key, RV: rv, Value: e.value}
	switch {
	case e.deleted:
		event.Type, event.Value = "DELETED", before
	case at == 0:
		event.Type = "ADDED"
	}
	return event
}

// Where to break a history.

func (w brokenWorld) op(ok func(*history.Op) bool) *history.Op {
	i := len(w.h.Ops) - 1 - slices.IndexFunc(reversed(w.h.Ops), func(op history.Op) bool { return ok(&op) })
	return &w.h.Ops[i]
}

func reversed[T any](all []T) []T {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}
