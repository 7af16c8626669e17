package watch

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"kontiki/fsm"
)

// ErrExpired says that events which the reader has not seen have left the
// window, or that the state was replaced: list, and start again from there.
var ErrExpired = errors.New("watch: the index is too old: its events have left the window")

// TopicOf returns the topic of a key, its first two segments with their
// slashes: "/core/pods/" for "/core/pods/ns/a".
func TopicOf(key string) string {
	slashes := 0
	for i := range len(key) {
		if key[i] == '/' {
			if slashes++; slashes == 3 {
				return key[:i+1]
			}
		}
	}
	return key
}

// batch is the events of one topic that were applied together. Immutable.
type batch struct {
	events      []fsm.Event
	first, last uint64 // indexes
	bytes       int64
	after       *link
}

// gone is what follows a link whose batch was evicted.
var gone = new(batch)

// link is a place between two batches. next goes nil -> batch -> gone and never
// back; ready is closed when it first changes.
type link struct {
	next  atomic.Pointer[batch]
	ready chan struct{}
}

func newLink() *link { return &link{ready: make(chan struct{})} }

// topic is the window of one topic. Written by the FSM goroutine only.
type topic struct {
	name    string
	cursors atomic.Int64

	mu     sync.Mutex // guards what follows
	window []*batch   // retained, oldest first
	head   *link      // before the oldest
	tail   *link      // after the newest
	floor  uint64     // events up to here may be missing
	events int        // in the window
	bytes  int64      // of values in the window

	dispatcher *dispatcher // nil until somebody selects

	pending []fsm.Event // being gathered by OnApply; FSM goroutine only, not guarded
}

func newTopic(name string, floor uint64) *topic {
	// The name may be a part of a key: do not keep the rest.
	t := &topic{name: strings.Clone(name), floor: floor, tail: newLink()}
	t.head = t.tail
	return t
}

// publish appends the pending events as a batch and evicts what exceeds cfg.
func (t *topic) publish(cfg Config) {
	b := newBatch(t.pending)
	t.pending = nil
	t.mu.Lock()
	if last := t.lastLocked(); b.first <= last {
		t.mu.Unlock()
		panic(fmt.Sprintf("watch: event %d of %s published after %d", b.first, t.name, last))
	}
	before := t.tail
	t.tail = b.after
	t.window = append(t.window, b)
	t.events += len(b.events)
	t.bytes += b.bytes
	before.next.Store(b)
	for len(t.window) > 1 && (t.events > cfg.MaxEvents || t.bytes > cfg.MaxBytes) {
		t.evictLocked()
	}
	t.mu.Unlock()
	close(before.ready) // outside of the lock: it costs per waiting cursor
}

func newBatch(events []fsm.Event) *batch {
	b := &batch{events: events, first: events[0].Index, last: events[len(events)-1].Index, after: newLink()}
	for i, ev := range events {
		if i > 0 && ev.Index <= events[i-1].Index {
			panic(fmt.Sprintf("watch: event %d published after %d", ev.Index, events[i-1].Index))
		}
		b.bytes += size(ev.Old) + size(ev.New)
	}
	return b
}

func size(e *fsm.Entry) int64 {
	if e == nil {
		return 0
	}
	return int64(len(e.Value))
}

// lastLocked returns the newest index that the topic has heard of.
func (t *topic) lastLocked() uint64 {
	if n := len(t.window); n > 0 {
		return t.window[n-1].last
	}
	return t.floor
}

// evictLocked drops the oldest batch. Cursors before it expire.
func (t *topic) evictLocked() {
	b := t.window[0]
	t.window[0] = nil // the slice shares its array with its later self
	t.window = t.window[1:]
	t.events -= len(b.events)
	t.bytes -= b.bytes
	t.floor = b.last
	t.head.next.Store(gone)
	t.head = b.after
}

// reset empties the window, expires every cursor and sets the floor.
func (t *topic) reset(floor uint64) {
	t.mu.Lock()
	for len(t.window) > 0 {
		t.evictLocked()
	}
	t.window = nil
	end := t.tail
	t.tail = newLink()
	t.head = t.tail
	t.floor = floor
	t.mu.Unlock()
	end.next.Store(gone)
	close(end.ready)
}

// seek returns the link after which the events with an index > from follow.
func (t *topic) seek(from uint64) (*link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from < t.floor {
		return nil, ErrExpired
	}
	i := t.searchLocked(from)
	switch {
	case i == len(t.window):
		return t.tail, nil
	case i == 0:
		return t.head, nil
	}
	return t.window[i-1].after, nil
}

// searchLocked returns the position of the first batch with events > index.
func (t *topic) searchLocked(index uint64) int {
	return sort.Search(len(t.window), func(i int) bool { return t.window[i].last > index })
}

// between returns the batches with events in (after, upto].
func (t *topic) between(after, upto uint64) ([]*batch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after < t.floor {
		return nil, ErrExpired
	}
	from := t.searchLocked(after)
	to := sort.Search(len(t.window), func(i int) bool { return t.window[i].first > upto })
	if from >= to {
		return nil, nil
	}
	return append([]*batch(nil), t.window[from:to]...), nil
}
