package watch

import (
	"math"
	"sync"

	"kontiki/fsm"
)

// maxPending bounds what a slow reader makes a dispatcher keep for it. One that is further
// behind reads the window, like a Cursor.
const maxPending = 256

// Selection is a reader's place among the events of a topic that have one value. It has the
// methods of a [Cursor], belongs to one goroutine like that, and must be closed.
type Selection struct {
	dispatcher *dispatcher
	value      string
	position   uint64 // all events up to it have been returned, or are not asked for
	ready      chan struct{}

	mu      sync.Mutex
	pending []fsm.Event
	behind  bool // there are events before what is handed out next that are not pending
	expired bool
}

// push appends an event, if the reader is not behind. The dispatcher calls it in order.
func (s *Selection) push(event fsm.Event) {
	s.mu.Lock()
	if s.behind = s.behind || len(s.pending) == maxPending; !s.behind {
		s.pending = append(s.pending, event)
	}
	s.mu.Unlock()
	s.wake()
}

func (s *Selection) expire() {
	s.mu.Lock()
	s.expired = true
	s.mu.Unlock()
	s.wake()
}

func (s *Selection) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // it is awake
	}
}

// TryNext returns events that have not been returned, oldest first, or nil when nothing is
// waiting. Some of them may not have the reader's value. It returns ErrExpired, now and ever
// after, when the reader fell out of the window or the state was restored.
func (s *Selection) TryNext() ([]fsm.Event, error) {
	for {
		events, behind, err := s.drain()
		if err != nil {
			return nil, err
		}
		if events = s.unseen(events); len(events) > 0 {
			return events, nil
		}
		if !behind {
			return nil, nil
		}
		if events, err = s.catchUp(); err != nil {
			s.expire()
			return nil, err
		}
		if events = s.unseen(events); len(events) > 0 {
			return events, nil
		}
	}
}

func (s *Selection) drain() (events []fsm.Event, behind bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired {
		return nil, false, ErrExpired
	}
	events, s.pending = s.pending, nil
	return events, s.behind, nil
}

// unseen leaves out events that are not asked for, before a future start for instance.
func (s *Selection) unseen(events []fsm.Event) []fsm.Event {
	events = cut(events, s.position, math.MaxUint64)
	if len(events) > 0 {
		s.position = events[len(events)-1].Index
	}
	return events
}

// catchUp reads from the window up to where the dispatcher is. What it hands out from then
// on is pending again.
func (s *Selection) catchUp() ([]fsm.Event, error) {
	d := s.dispatcher
	d.mu.Lock()
	upto := d.position
	s.mu.Lock()
	s.behind = false
	s.mu.Unlock()
	d.mu.Unlock()
	return d.hub.Since(d.topic, s.position, upto)
}

// Wait returns a channel that has something when TryNext has something to say.
func (s *Selection) Wait() <-chan struct{} { return s.ready }

// Position is what [Cursor.Position] is: an index up to which all events that were asked
// for have been returned. It never falls, and moves on while nothing happens.
func (s *Selection) Position() uint64 {
	settled := s.dispatcher.settled() // before the look at what is pending
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.behind && !s.expired && len(s.pending) == 0 {
		s.position = max(s.position, settled)
	}
	return s.position
}

// Close ends the reader.
func (s *Selection) Close() { s.dispatcher.remove(s) }
