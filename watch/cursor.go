package watch

import (
	"context"
	"runtime"
	"sync/atomic"

	"kontiki/fsm"
)

// Cursor is one reader's place in a topic. It belongs to one goroutine.
type Cursor struct {
	hub      *Hub
	topic    *topic
	at       *link // what follows it has not been returned
	from     uint64
	position uint64
	cleanup  runtime.Cleanup
	counted  bool // in the statistics
}

// Subscribe returns a cursor over the events of topic with an index > from. It
// returns ErrExpired if some of those may be missing here. A from that is not
// reached yet is fine: events up to it are passed over when they come.
func (h *Hub) Subscribe(topic string, from uint64) (*Cursor, error) {
	c, err := h.cursor(topic, from)
	if err != nil {
		return nil, err
	}
	c.counted = true
	c.topic.cursors.Add(1)
	c.cleanup = runtime.AddCleanup(c, func(n *atomic.Int64) { n.Add(-1) }, &c.topic.cursors)
	return c, nil
}

// cursor returns one that the statistics do not count.
func (h *Hub) cursor(topic string, from uint64) (*Cursor, error) {
	t := h.topic(topic)
	at, err := t.seek(from)
	if err != nil {
		return nil, err
	}
	return &Cursor{hub: h, topic: t, at: at, from: from, position: from}, nil
}

// Close takes the cursor out of the statistics. It must not be used afterwards.
// A cursor that is merely dropped leaves them when it is collected.
func (c *Cursor) Close() {
	if c.counted {
		c.counted = false
		c.cleanup.Stop()
		c.topic.cursors.Add(-1)
		runtime.KeepAlive(c) // or the cleanup could have run before Stop
	}
}

// Next returns the events of the next batch, waiting for one if need be. It
// returns ErrExpired, now and ever after, when the cursor fell out of the window
// or the state was restored, and the error of ctx when that ends.
//
// The slice is shared by all cursors: do not write to it.
func (c *Cursor) Next(ctx context.Context) ([]fsm.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if events, err := c.TryNext(); events != nil || err != nil {
			return events, err
		}
		select {
		case <-c.Wait():
		case <-ctx.Done():
		}
	}
}

// TryNext is Next that returns nil and no error when nothing is waiting.
func (c *Cursor) TryNext() ([]fsm.Event, error) {
	for {
		b := c.at.next.Load()
		switch b {
		case nil:
			return nil, nil
		case gone:
			return nil, ErrExpired
		}
		c.at = b.after
		c.position = max(c.position, b.last)
		if events := cut(b.events, c.from, b.last); len(events) > 0 {
			return events, nil
		}
	}
}

// Wait returns a channel that is closed when TryNext has something to say. It is
// good until TryNext or Next is called. (After a batch which lies wholly before
// a future from, TryNext says nothing: call Wait again.)
func (c *Cursor) Wait() <-chan struct{} { return c.at.ready }

// Position returns an index such that all events of the topic between the
// cursor's from and that index have been returned: what a bookmark may say. It
// never falls. When the cursor has seen everything it is the hub's index, so it
// moves on while the topic is quiet.
//
// It is never less than from. While the hub has not reached a future from, it
// is from: true, because nothing up to from is asked for, but no proof that this
// node got there; who needs that compares with Hub.Index.
func (c *Cursor) Position() uint64 {
	// In this order: all events up to this index were linked before it was
	// stored, so if no event follows then, none up to it does.
	index := c.hub.Index()
	if c.at.next.Load() == nil {
		c.position = max(c.position, index)
	}
	return c.position
}
