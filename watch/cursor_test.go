package watch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"kontiki/fsm"
)

func TestCursorStartsAfterFrom(t *testing.T) {
	h := NewHub(Config{})
	h.OnApply(4, []fsm.Event{at(pods, 1, 1), at(nodes, 2, 1), at(pods, 3, 1)})
	h.OnApply(5, nil)
	publish(h, 6, 8)
	for from, want := range map[uint64]string{
		0: "[1 3] [6] [8]", 1: "[3] [6] [8]", 2: "[3] [6] [8]", 3: "[6] [8]", 5: "[6] [8]", 6: "[8]", 8: "", 20: "",
	} {
		if got := drain(mustSubscribe(t, h, pods, from)); got != want {
			t.Errorf("from %d: %s, want %s", from, got, want)
		}
	}
	if got := drain(mustSubscribe(t, h, nodes, 0)); got != "[2]" {
		t.Errorf("nodes: %s", got)
	}
	if got := drain(mustSubscribe(t, h, "/a/b/", 0)); got != "" {
		t.Errorf("a topic without events has %s", got)
	}
}

func TestSlowCursorExpires(t *testing.T) {
	h := NewHub(Config{MaxEvents: 3})
	slow, edge, quick := mustSubscribe(t, h, pods, 0), mustSubscribe(t, h, pods, 0), mustSubscribe(t, h, pods, 0)
	publish(h, 1)
	for _, c := range []*Cursor{edge, quick} {
		if got := drain(c); got != "[1]" {
			t.Errorf("got %s", got)
		}
	}
	publish(h, 2, 3)
	if got := drain(quick); got != "[2] [3]" {
		t.Errorf("quick got %s", got)
	}
	publish(h, 4) // evicts 1, which only slow has not seen
	for name, want := range map[*Cursor]string{slow: "expired", edge: "[2] [3] [4]", quick: "[4]"} {
		<-name.Wait()
		if got := drain(name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := drain(slow); got != "expired" {
		t.Errorf("slow came back: %s", got)
	}
	if p := slow.Position(); p != 0 {
		t.Errorf("slow is at %d", p)
	}
}

// TestStalledCursorPinsNothing holds cursors that never read, in three places,
// and wants what was evicted, or emptied by a restore, to be collected.
func TestStalledCursorPinsNothing(t *testing.T) {
	h := NewHub(Config{MaxEvents: 2})
	start := mustSubscribe(t, h, pods, 0)
	var values []weak.Pointer[fsm.Entry]
	published := func(index uint64) {
		ev := at(pods, index, 1)
		values = append(values, weak.Make(ev.New))
		h.OnApply(index, []fsm.Event{ev})
	}
	published(1)
	middle := mustSubscribe(t, h, pods, 1)
	for index := uint64(2); index <= 50; index++ {
		published(index)
	}
	end := mustSubscribe(t, h, pods, 50)
	alive := func() (n int) {
		runtime.GC()
		for _, v := range values {
			if v.Value() != nil {
				n++
			}
		}
		return n
	}
	if n := alive(); n != 2 {
		t.Errorf("%d entries are in memory, want the 2 of the window", n)
	}
	h.OnRestore(60)
	if n := alive(); n != 0 {
		t.Errorf("%d entries are in memory after a restore", n)
	}
	for _, c := range []*Cursor{start, middle, end} {
		if got := drain(c); got != "expired" {
			t.Errorf("got %s", got)
		}
	}
}

func TestFutureFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Config{})
		publish(h, 1, 2)
		c := mustSubscribe(t, h, pods, 5)
		if p := c.Position(); p != 5 {
			t.Errorf("position %d", p)
		}
		got := ""
		go func() {
			events, err := c.Next(t.Context())
			got = fmt.Sprint(indexes(events), err)
		}()
		publish(h, 3)
		h.OnApply(5, []fsm.Event{at(pods, 4, 1), at(pods, 5, 1)})
		synctest.Wait()
		if got != "" {
			t.Errorf("got %s, which is not after 5", got)
		}
		h.OnApply(7, []fsm.Event{at(pods, 6, 1), at(pods, 7, 1)})
		synctest.Wait()
		if got != "[6 7]<nil>" {
			t.Errorf("got %s", got)
		}
	})
}

func TestNextEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Config{})
		c := mustSubscribe(t, h, pods, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var got error
		go func() { _, got = c.Next(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(got, context.Canceled) {
			t.Errorf("got %v", got)
		}
		publish(h, 1)
		if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context gave %v", err)
		}
		if got := drain(c); got != "[1]" {
			t.Errorf("the event was lost: %s", got)
		}
	})
}

// TestPosition: it is the hub's index when all is read, else what was read last.
func TestPosition(t *testing.T) {
	h := NewHub(Config{})
	c, late := mustSubscribe(t, h, pods, 0), mustSubscribe(t, h, pods, 9)
	expect := func(want, wantLate uint64) {
		t.Helper()
		if c.Position() != want || late.Position() != wantLate {
			t.Errorf("positions %d, %d, want %d, %d", c.Position(), late.Position(), want, wantLate)
		}
	}
	expect(0, 9)
	h.OnApply(3, []fsm.Event{at(nodes, 2, 1)}) // quiet here
	expect(3, 9)
	publish(h, 4, 5)
	expect(3, 9) // waiting, unread
	if events, err := c.TryNext(); err != nil || indexes(events) != "[4]" {
		t.Errorf("got %v, %v", events, err)
	}
	expect(4, 9)
	h.OnApply(12, nil)
	expect(4, 9)
	drain(c)
	drain(late)
	expect(12, 12)
	publish(h, 13)
	expect(12, 12)
}
