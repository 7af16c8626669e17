package watch

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"kontiki/fsm"
)

// In the stress test an index tells its events: one in three is of pods, one of
// nodes, one of nothing. So a reader knows what it must see without being told.
func stressEvent(index uint64) (fsm.Event, bool) {
	switch index % 3 {
	case 0:
		return at(pods, index, 10), true
	case 1:
		return at(nodes, index, 10), true
	}
	return fsm.Event{}, false
}

func stressTopic(index uint64) string {
	ev, ok := stressEvent(index)
	if !ok {
		return ""
	}
	return TopicOf(ev.Key())
}

// stress publishes the indexes up to last, in random batches, with a restore now
// and then that jumps over some.
func stress(h *Hub, r *rand.Rand, last uint64, restores bool) {
	for index := uint64(0); index < last; {
		if restores && r.IntN(500) == 0 {
			index += 1 + r.Uint64N(50)
			h.OnRestore(index)
			continue
		}
		var events []fsm.Event
		for range 1 + r.IntN(8) {
			index++
			if ev, ok := stressEvent(index); ok {
				events = append(events, ev)
			}
		}
		h.OnApply(index, events)
	}
}

// reader follows one topic and checks what cursors promise.
type reader struct {
	t     *testing.T
	hub   *Hub
	topic string
	rand  *rand.Rand
	next  uint64 // all of the topic before it has been seen
	gone  int    // how often it expired
	seen  int
}

// expect moves next to the next index of the topic and returns it.
func (r *reader) expect() uint64 {
	for stressTopic(r.next) != r.topic {
		r.next++
	}
	return r.next
}

func (r *reader) take(events []fsm.Event) {
	for _, ev := range events {
		if want := r.expect(); ev.Index != want || TopicOf(ev.Key()) != r.topic {
			r.t.Errorf("%s: got event %d %s, want %d", r.topic, ev.Index, ev.Key(), want)
		}
		r.next = ev.Index + 1
		if ev.Index <= stressLast {
			r.seen++
		}
	}
}

// run reads until index last, subscribing again whenever the cursor expires.
func (r *reader) run(last uint64) {
	for r.next <= last && !r.t.Failed() {
		from := r.next - min(r.next, 1)
		c, err := r.hub.Subscribe(r.topic, from)
		if err != nil { // list again: the state at the hub's index
			r.next = r.hub.Index() + r.rand.Uint64N(20) // sometimes the future
			r.gone++
			continue
		}
		r.follow(c, last)
		c.Close()
	}
}

func (r *reader) follow(c *Cursor, last uint64) {
	for r.next <= last && !r.t.Failed() {
		events, err := r.read(c)
		if errors.Is(err, ErrExpired) {
			r.gone++
			return
		}
		r.take(events)
		// A bookmark: nothing up to it may come later, nothing may be missing.
		if p := c.Position(); p >= r.next {
			if want := r.expect(); want <= p {
				r.t.Errorf("%s: position %d, but event %d has not been returned", r.topic, p, want)
			}
			r.next = p + 1
		}
		if r.rand.IntN(200) == 0 {
			return // go on with a new cursor
		}
	}
}

func (r *reader) read(c *Cursor) ([]fsm.Event, error) {
	if r.rand.IntN(2) == 0 {
		return c.TryNext()
	}
	if c.Position() >= stressLast-10 { // there may be no further event
		return c.TryNext()
	}
	return c.Next(r.t.Context())
}

const stressLast = 30_000

// TestStress: one publisher, many cursors: ordered, unique, nothing missing,
// bookmarks true; through eviction, expiry and restores. Run it with -race.
func TestStress(t *testing.T) {
	for _, test := range []struct {
		name     string
		cfg      Config
		restores bool
	}{
		{"wide", Config{}, false},
		{"narrow", Config{MaxEvents: 20}, false},
		{"narrow bytes", Config{MaxBytes: 200}, false},
		{"restores", Config{MaxEvents: 1000}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			seed := rand.Uint64()
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			h := NewHub(test.cfg)
			var done sync.WaitGroup
			readers := make([]*reader, 20)
			for i := range readers {
				readers[i] = &reader{t: t, hub: h, next: 1, topic: []string{pods, nodes}[i%2], rand: rand.New(rand.NewPCG(seed, uint64(i)))}
				done.Go(func() { readers[i].run(stressLast) })
			}
			stress(h, rand.New(rand.NewPCG(seed, 99)), stressLast+10, test.restores)
			done.Wait()
			seen, gone := 0, 0
			for _, r := range readers {
				seen += r.seen
				gone += r.gone
			}
			if test.name == "wide" && (gone > 0 || seen != 20*stressLast/3) {
				t.Errorf("%d events seen, %d times expired", seen, gone)
			}
			t.Logf("%d events seen, %d times expired", seen, gone)
		})
	}
}
