package watch

import (
	"sync"

	"kontiki/fsm"
)

// dispatcher hands the events of one topic to readers that each want a small part of it:
// the pods of one node, for instance. An event costs the readers that want it, and nobody
// else, however many there are; a [Cursor] is woken by every event of its topic.
//
// It reads the topic with one cursor, in a goroutine that runs while there are readers.
type dispatcher struct {
	hub    *Hub
	topic  string
	values func(fsm.Event) []string

	mu          sync.Mutex
	cursor      *Cursor // nil while there are no readers; used under mu
	stop        chan struct{}
	dispatching bool   // events have been taken from the cursor and not been handed out
	position    uint64 // all events up to it have been handed out
	readers     map[string]map[*Selection]struct{}
	count       int
}

// Select is Subscribe for a reader that wants those events only that have a value. An event
// without any is for everybody; others may come as well, when the reader has fallen behind.
//
// The values of an event are what readers select by, none twice. The function must be the
// same for all readers of a topic. It is called without a lock, by one goroutine.
func (h *Hub) Select(topic string, from uint64, value string, values func(fsm.Event) []string) (*Selection, error) {
	t := h.topic(topic)
	t.mu.Lock()
	if t.dispatcher == nil {
		t.dispatcher = &dispatcher{hub: h, topic: t.name, values: values, readers: make(map[string]map[*Selection]struct{})}
	}
	d := t.dispatcher
	t.mu.Unlock()
	return d.subscribe(value, from)
}

func (d *dispatcher) subscribe(value string, from uint64) (*Selection, error) {
	if from < d.hub.Floor(d.topic) {
		return nil, ErrExpired
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor != nil && d.cursor.at.next.Load() == gone { // the goroutine has yet to learn it
		d.expireLocked()
	}
	if d.cursor == nil {
		if err := d.startLocked(); err != nil {
			return nil, err
		}
	}
	s := &Selection{dispatcher: d, value: value, position: from, ready: make(chan struct{}, 1), behind: true}
	if d.readers[value] == nil {
		d.readers[value] = make(map[*Selection]struct{})
	}
	d.readers[value][s] = struct{}{}
	d.count++
	d.cursor.topic.cursors.Add(1)
	return s, nil
}

// remove ends the dispatching with the last reader.
func (d *dispatcher) remove(s *Selection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	group := d.readers[s.value]
	if _, ok := group[s]; !ok {
		return
	}
	delete(group, s)
	d.cursor.topic.cursors.Add(-1)
	if len(group) == 0 {
		delete(d.readers, s.value)
	}
	if d.count--; d.count == 0 {
		d.endLocked()
	}
}

func (d *dispatcher) startLocked() (err error) {
	d.position = d.hub.Index()
	if d.cursor, err = d.hub.cursor(d.topic, d.position); err != nil {
		return err
	}
	d.stop = make(chan struct{})
	go d.run(d.cursor, d.stop)
	return nil
}

func (d *dispatcher) endLocked() {
	if d.cursor != nil {
		close(d.stop)
		d.cursor, d.dispatching = nil, false
	}
}

// run hands out what the cursor has until stop.
func (d *dispatcher) run(cursor *Cursor, stop <-chan struct{}) {
	for {
		events, wait := d.take(cursor)
		if events == nil && wait == nil {
			return
		}
		if events != nil {
			d.deliver(cursor, events)
			continue
		}
		select {
		case <-wait:
		case <-stop:
			return
		}
	}
}

// take returns events to hand out, or what to wait for, or neither at the end.
func (d *dispatcher) take(cursor *Cursor) ([]fsm.Event, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor != cursor { // this goroutine was stopped, another one may run
		return nil, nil
	}
	events, err := cursor.TryNext()
	if err != nil {
		d.expireLocked()
		return nil, nil
	}
	d.dispatching = events != nil
	if events == nil {
		return nil, cursor.Wait()
	}
	return events, nil
}

// expireLocked ends all readers: events that they have not seen are gone.
func (d *dispatcher) expireLocked() {
	for _, group := range d.readers {
		for s := range group {
			s.expire()
		}
	}
	d.cursor.topic.cursors.Add(-int64(d.count))
	clear(d.readers)
	d.count = 0
	d.endLocked()
}

func (d *dispatcher) deliver(cursor *Cursor, events []fsm.Event) {
	values := make([][]string, len(events))
	for i, event := range events {
		values[i] = d.values(event) // may take long
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor != cursor {
		return
	}
	for i, event := range events {
		d.pushLocked(event, values[i])
	}
	d.position, d.dispatching = events[len(events)-1].Index, false
}

func (d *dispatcher) pushLocked(event fsm.Event, values []string) {
	for _, value := range values {
		for s := range d.readers[value] {
			s.push(event)
		}
	}
	if len(values) > 0 {
		return
	}
	for _, group := range d.readers {
		for s := range group {
			s.push(event)
		}
	}
}

// settled returns an index up to which everything has been handed out, which moves on
// while the topic is quiet.
func (d *dispatcher) settled() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor == nil || d.dispatching {
		return d.position
	}
	return max(d.position, d.cursor.Position())
}
