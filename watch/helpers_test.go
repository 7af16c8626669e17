package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kontiki/fsm"
)

const (
	pods  = "/core/pods/"
	nodes = "/core/nodes/"
)

// at makes an event of a topic at an index, with a value of n bytes.
func at(topic string, index uint64, n int) fsm.Event {
	e := &fsm.Entry{Key: topic + "ns/a", Value: make([]byte, n), CreateIndex: index, ModIndex: index}
	return fsm.Event{Index: index, New: e}
}

// publish publishes one event of pods for each index, each as its own batch.
func publish(h *Hub, indexes ...uint64) {
	for _, index := range indexes {
		h.OnApply(index, []fsm.Event{at(pods, index, 1)})
	}
}

func mustSubscribe(t testing.TB, h *Hub, topic string, from uint64) *Cursor {
	t.Helper()
	c, err := h.Subscribe(topic, from)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// drain returns the indexes of the batches that wait for c, a batch in brackets,
// and how it ended.
func drain(c *Cursor) string {
	var text []string
	for {
		events, err := c.TryNext()
		switch {
		case errors.Is(err, ErrExpired):
			return strings.Join(append(text, "expired"), " ")
		case err != nil:
			return err.Error()
		case events == nil:
			return strings.Join(text, " ")
		}
		text = append(text, indexes(events))
	}
}

func indexes(events []fsm.Event) string {
	list := []uint64{}
	for _, ev := range events {
		list = append(list, ev.Index)
	}
	return fmt.Sprint(list)
}

func mustPanic(t *testing.T, with string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, with) {
			t.Errorf("panic %q, want one with %q", text, with)
		}
	}()
	fn()
}
