package watch

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"kontiki/fsm"
)

// Defaults of Config. A window should outlast the gap between a reader's list
// and its watch, and a change of node, under load: 32,768 events are 3 s of a
// storm of 10,000 a second, and hours of ordinary life.
const (
	DefaultMaxEvents = 32 << 10
	DefaultMaxBytes  = 64 << 20
)

// Config bounds the window of each topic. The newest batch is always kept.
type Config struct {
	// MaxEvents is how many events are kept; 0 is DefaultMaxEvents.
	MaxEvents int
	// MaxBytes bounds the values that these events hold, old and new, counted
	// for each event; 0 is DefaultMaxBytes. Real memory is less: a value is
	// the same bytes in the state, in the event that brought it and in the one
	// that replaced it.
	MaxBytes int64
}

// Hub is a node's fan-out of events. It is an fsm.Observer.
type Hub struct {
	cfg   Config
	index atomic.Uint64

	mu     sync.RWMutex
	topics map[string]*topic // guarded by mu; a topic, once there, stays
	floor  uint64            // guarded by mu; of topics that are not there yet

	progress progress

	touched []*topic // scratch of OnApply, FSM goroutine only
}

var _ fsm.Observer = (*Hub)(nil)

// NewHub returns a hub that has seen nothing. Its floor is 0: what it will miss
// is what the FSM restores, and OnRestore tells it that.
func NewHub(cfg Config) *Hub {
	cfg.MaxEvents = cmp.Or(cfg.MaxEvents, DefaultMaxEvents)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	return &Hub{cfg: cfg, topics: make(map[string]*topic)}
}

// OnApply publishes the events of one applied batch, and then the index: who
// sees Index() >= n finds all events up to n.
func (h *Hub) OnApply(index uint64, events []fsm.Event) {
	if last := h.index.Load(); index <= last {
		panic(fmt.Sprintf("watch: index %d published after %d", index, last))
	}
	for _, ev := range events {
		t := h.topic(TopicOf(ev.Key()))
		if t.pending == nil {
			h.touched = append(h.touched, t)
		}
		t.pending = append(t.pending, ev)
	}
	for i, t := range h.touched {
		t.publish(h.cfg)
		h.touched[i] = nil
	}
	h.touched = h.touched[:0]
	h.index.Store(index)
	h.progress.announce()
}

// OnRestore empties all windows and ends all cursors with ErrExpired: which
// events led to the new state is not known here. The floor becomes index; the
// FSM's indexes do not fall, and if one did, the floor would not.
func (h *Hub) OnRestore(index uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.floor = max(index, h.index.Load())
	for _, t := range h.topics {
		t.reset(h.floor)
	}
	// Last, or a cursor could look drained at an index whose events it lacks.
	h.index.Store(h.floor)
	h.progress.announce()
}

// topic returns the topic of that name, and makes it if need be.
func (h *Hub) topic(name string) *topic {
	if t := h.lookup(name); t != nil {
		return t
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		t = newTopic(name, h.floor)
		h.topics[t.name] = t
	}
	return t
}

func (h *Hub) lookup(name string) *topic {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.topics[name]
}

// Index returns the last index published.
func (h *Hub) Index() uint64 { return h.index.Load() }

// Floor returns the index up to which events of topic may be missing. Cursors
// start there or later.
func (h *Hub) Floor(topic string) uint64 {
	h.mu.RLock()
	t, floor := h.topics[topic], h.floor
	h.mu.RUnlock()
	if t == nil {
		return floor
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.floor
}

// Since returns the events of topic with after < index <= upto, or ErrExpired if
// some of them may be missing. With the index of a view as upto they are what
// fsm.View.Rewind wants.
//
// The FSM swaps its view a moment before it tells the hub. Events of that moment
// would be missing without a trace, so Since waits until the hub has reached
// upto: never ask for more than a view has shown, and never from an observer.
func (h *Hub) Since(topic string, after, upto uint64) ([]fsm.Event, error) {
	h.progress.wait(func() bool { return h.Index() >= upto })
	batches, err := h.topic(topic).between(after, upto)
	if err != nil {
		return nil, err
	}
	var events []fsm.Event
	for _, b := range batches {
		events = append(events, cut(b.events, after, upto)...)
	}
	return events, nil
}

// cut returns the part of events with after < index <= upto.
func cut(events []fsm.Event, after, upto uint64) []fsm.Event {
	position := func(index uint64) int {
		i, _ := slices.BinarySearchFunc(events, index, func(ev fsm.Event, index uint64) int {
			if ev.Index <= index {
				return -1
			}
			return 1
		})
		return i
	}
	from := position(after)
	return events[from:max(from, position(upto))]
}
