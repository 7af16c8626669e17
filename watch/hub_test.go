package watch

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"kontiki/fsm"
)

func TestTopicOf(t *testing.T) {
	for key, want := range map[string]string{
		"/core/pods/ns/a":         pods,
		"/apps/deployments/ns/a/": "/apps/deployments/",
		"/core/nodes/n":           nodes,
		"/core/nodes/":            nodes,
		"/core/nodes":             "/core/nodes",
		"/":                       "/",
		"":                        "",
	} {
		if got := TopicOf(key); got != want {
			t.Errorf("topic of %q is %q, want %q", key, got, want)
		}
	}
}

func TestWindowBounds(t *testing.T) {
	for _, test := range []struct {
		name          string
		cfg           Config
		events, bytes int
		floor         uint64
	}{
		{"events", Config{MaxEvents: 3}, 3, 30, 7},
		{"bytes", Config{MaxBytes: 45}, 4, 40, 6},
		{"one event", Config{MaxEvents: 1}, 1, 10, 9},
		{"less than one event", Config{MaxBytes: 1}, 1, 10, 9},
		{"defaults", Config{}, 10, 100, 0},
	} {
		h := NewHub(test.cfg)
		for i := range uint64(10) {
			h.OnApply(i+1, []fsm.Event{at(pods, i+1, 10)})
		}
		want := TopicStats{pods, test.floor, test.events, int64(test.bytes), 0}
		if s := h.Stats(); len(s.Topics) != 1 || s.Topics[0] != want || s.Index != 10 || h.Floor(pods) != test.floor {
			t.Errorf("%s: got %+v, want %+v", test.name, s, want)
		}
		if test.floor > 0 {
			if _, err := h.Subscribe(pods, test.floor-1); !errors.Is(err, ErrExpired) {
				t.Errorf("%s: subscribed below the floor: %v", test.name, err)
			}
			if _, err := h.Since(pods, test.floor-1, 10); !errors.Is(err, ErrExpired) {
				t.Errorf("%s: events since below the floor: %v", test.name, err)
			}
		}
		if got := len(drain(mustSubscribe(t, h, pods, test.floor))); got == 0 {
			t.Errorf("%s: nothing at the floor", test.name)
		}
		if h.Floor(nodes) != 0 {
			t.Errorf("%s: another topic has a floor", test.name)
		}
	}
}

// TestBytesCountOldAndNew: an update holds two values, a delete one.
func TestBytesCountOldAndNew(t *testing.T) {
	h := NewHub(Config{})
	first, second := at(pods, 1, 10), at(pods, 2, 7)
	second.Old = first.New
	h.OnApply(2, []fsm.Event{first, second, {Index: 3, Old: second.New}})
	if got := h.Stats().Topics[0].Bytes; got != 10+17+7 {
		t.Errorf("%d bytes", got)
	}
}

func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Config{})
		publish(h, 1, 2)
		waiting, behind := mustSubscribe(t, h, pods, 2), mustSubscribe(t, h, pods, 0)
		future, quiet := mustSubscribe(t, h, pods, 100), mustSubscribe(t, h, nodes, 0)
		var got error
		go func() { _, got = waiting.Next(t.Context()) }()
		synctest.Wait()
		h.OnRestore(50)
		synctest.Wait()
		if !errors.Is(got, ErrExpired) {
			t.Errorf("the waiting cursor got %v", got)
		}
		for _, c := range []*Cursor{behind, future, quiet} {
			if got := drain(c); got != "expired" {
				t.Errorf("got %s", got)
			}
		}
		if behind.Position() != 0 || quiet.Position() != 0 {
			t.Error("an expired cursor moved on")
		}
		for _, topic := range []string{pods, nodes, "/new/topic/"} {
			if h.Floor(topic) != 50 {
				t.Errorf("%s has floor %d", topic, h.Floor(topic))
			}
			if _, err := h.Subscribe(topic, 49); !errors.Is(err, ErrExpired) {
				t.Errorf("%s: subscribed below the floor: %v", topic, err)
			}
		}
		c := mustSubscribe(t, h, pods, 50)
		publish(h, 51)
		if got := drain(c); got != "[51]" || h.Index() != 51 {
			t.Errorf("after the restore: %s, index %d", got, h.Index())
		}
		// A backup is restored: what was published since is no history of it.
		h.OnRestore(20)
		if _, err := h.Subscribe(pods, 50); !errors.Is(err, ErrExpired) || h.Floor(pods) != 51 {
			t.Errorf("floor %d, subscribe %v", h.Floor(pods), err)
		}
	})
}

func TestOutOfOrderPanics(t *testing.T) {
	h := NewHub(Config{})
	publish(h, 5)
	mustPanic(t, "index 5 published after 5", func() { h.OnApply(5, nil) })
	mustPanic(t, "event 5 of /core/pods/ published after 5", func() { h.OnApply(6, []fsm.Event{at(pods, 5, 1)}) })
	mustPanic(t, "event 7 published after 7", func() { NewHub(Config{}).OnApply(7, []fsm.Event{at(pods, 7, 1), at(pods, 7, 1)}) })
}

func TestStatsCountCursors(t *testing.T) {
	h := NewHub(Config{})
	kept, closed := mustSubscribe(t, h, pods, 0), mustSubscribe(t, h, pods, 0)
	mustSubscribe(t, h, pods, 0) // dropped
	mustSubscribe(t, h, nodes, 0).Close()
	closed.Close()
	closed.Close()
	for h.Stats().Topics[1].Cursors != 1 {
		runtime.GC() // until the dropped one is cleaned up
	}
	if s := h.Stats(); s.Topics[0].Topic != nodes || s.Topics[0].Cursors != 0 || s.Topics[1].Topic != pods {
		t.Errorf("got %+v", s)
	}
	kept.Close()
	if n := h.Stats().Topics[1].Cursors; n != 0 {
		t.Errorf("%d cursors", n)
	}
}

// TestSinceWaitsForTheHub asks for an index that a view has shown and the hub
// has not heard of yet.
func TestSinceWaitsForTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Config{})
		publish(h, 1, 2)
		got := ""
		go func() {
			events, err := h.Since(pods, 1, 4)
			got = fmt.Sprint(indexes(events), err)
		}()
		publish(h, 3)
		synctest.Wait()
		if got != "" {
			t.Errorf("got %s before index 4", got)
		}
		h.OnApply(5, []fsm.Event{at(pods, 4, 1), at(pods, 5, 1)})
		synctest.Wait()
		if got != "[2 3 4]<nil>" {
			t.Errorf("got %s", got)
		}
		if events, err := h.Since(pods, 4, 4); len(events) > 0 || err != nil {
			t.Errorf("got %v, %v between 4 and 4", events, err)
		}
	})
}
