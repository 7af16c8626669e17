package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"kontiki/fsm"
)

// byRest gives event 7 the value "1" of three, and "all".
func byRest(event fsm.Event) []string { return []string{rest(event.Index), "all"} }

func rest(index uint64) string { return fmt.Sprint(index % 3) }

func mustSelect(t testing.TB, h *Hub, value string, from uint64) *Selection {
	t.Helper()
	s, err := h.Select(pods, from, value, byRest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// await returns the indexes of the events with the selection's value, n of them or more.
func await(t testing.TB, s *Selection, n int) (seen []uint64) {
	t.Helper()
	for len(seen) < n {
		events, err := s.TryNext()
		if err != nil {
			t.Fatalf("after %d: %v", seen, err)
		}
		for _, event := range events {
			if s.value == "all" || rest(event.Index) == s.value {
				seen = append(seen, event.Index)
			}
		}
		if events == nil {
			select {
			case <-s.Wait():
			case <-t.Context().Done():
				t.Fatalf("only %d", seen)
			}
		}
	}
	return seen
}

// TestDispatcher: readers from the past, the present and the future.
func TestDispatcher(t *testing.T) {
	h := NewHub(Config{})
	publish(h, 1, 2, 3, 4)
	want := map[uint64]string{0: "[1 4 7 10 13]", 1: "[4 7 10 13]", 4: "[7 10 13]", 8: "[10 13]", 12: "[13]"}
	count := map[uint64]int{0: 5, 1: 4, 4: 3, 8: 2, 12: 1}
	readers := make(map[uint64]*Selection)
	for from := range want {
		readers[from] = mustSelect(t, h, "1", from)
	}
	publish(h, 5, 6, 7, 8, 9, 10, 11, 12, 13)
	for from, s := range readers {
		if got := fmt.Sprint(await(t, s, count[from])); got != want[from] {
			t.Errorf("from %d: %s, want %s", from, got, want[from])
		}
	}
}

// TestDispatcherOfMany: who wants other events is not woken.
func TestDispatcherOfMany(t *testing.T) {
	h := NewHub(Config{})
	wanting, other := mustSelect(t, h, "1", 0), mustSelect(t, h, "nothing", 0)
	if events, err := other.TryNext(); events != nil || err != nil {
		t.Fatal(events, err)
	}
	publish(h, 1, 2, 3, 4)
	await(t, wanting, 2)
	select {
	case <-other.Wait():
		t.Error("woken by the events of others")
	default:
	}
	if p := other.Position(); p < 1 { // all up to the last of wanting's were handed out
		t.Errorf("position %d", p)
	}
}

// TestDispatcherWithoutValue: what cannot be told apart is for everybody.
func TestDispatcherWithoutValue(t *testing.T) {
	h := NewHub(Config{})
	s, err := h.Select(pods, 0, "something", func(fsm.Event) []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if events, err := s.TryNext(); events != nil || err != nil {
		t.Fatal(events, err)
	}
	publish(h, 1)
	<-s.Wait()
	if events, err := s.TryNext(); len(events) != 1 || err != nil {
		t.Error(events, err)
	}
}

// TestDispatcherSlowReader: what is kept for a reader is bounded, and it misses nothing.
func TestDispatcherSlowReader(t *testing.T) {
	h := NewHub(Config{})
	slow, fast := mustSelect(t, h, "all", 0), mustSelect(t, h, "all", 0)
	if events, err := slow.TryNext(); events != nil || err != nil { // from now on events are pushed
		t.Fatal(events, err)
	}
	const n = 3*maxPending + 1
	for index := uint64(1); index <= n; index++ {
		publish(h, index)
	}
	await(t, fast, n)
	if len(slow.pending) != maxPending || !slow.behind {
		t.Errorf("%d are kept, behind: %t", len(slow.pending), slow.behind)
	}
	if p := slow.Position(); p != 0 {
		t.Errorf("position %d before anything was returned", p)
	}
	for i, index := range await(t, slow, n) {
		if index != uint64(i+1) {
			t.Fatalf("event %d is %d", i+1, index)
		}
	}
}

func TestDispatcherExpires(t *testing.T) {
	h := NewHub(Config{MaxEvents: 2})
	publish(h, 1, 2, 3, 4)
	if _, err := h.Select(pods, 1, "1", byRest); !errors.Is(err, ErrExpired) {
		t.Errorf("before the window: %v", err)
	}
	s := mustSelect(t, h, "1", 4)
	if _, err := s.TryNext(); err != nil {
		t.Fatal(err)
	}
	h.OnRestore(10)
	fresh := mustSelect(t, h, "1", 10)
	<-s.Wait()
	if _, err := s.TryNext(); !errors.Is(err, ErrExpired) {
		t.Errorf("after a restore: %v", err)
	}
	publish(h, 13)
	if got := await(t, fresh, 1); got[0] != 13 {
		t.Errorf("a reader from after the restore sees %d", got)
	}
}

// TestDispatcherEnds: without readers nothing runs, and with some again it does.
func TestDispatcherEnds(t *testing.T) {
	h := NewHub(Config{})
	for index := uint64(1); index < 10; index += 3 {
		s := mustSelect(t, h, "1", index-1)
		publish(h, index)
		await(t, s, 1)
		if n := h.Stats().Topics[0].Cursors; n != 1 {
			t.Errorf("%d cursors are counted", n)
		}
		s.Close()
		s.Close()
		if d := h.topic(pods).dispatcher; d.cursor != nil || d.count != 0 || len(d.readers) != 0 || h.Stats().Topics[0].Cursors != 0 {
			t.Errorf("after the last reader: %+v", d)
		}
	}
}

// TestDispatcherStress: every reader sees every event that it wants once and in order, or
// learns that it does not.
func TestDispatcherStress(t *testing.T) {
	const last = 30_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := NewHub(Config{MaxEvents: 5000})
	done := make(chan struct{})
	var readers sync.WaitGroup
	expired, seen := make([]int, 9), make([]int, 9)
	for i := range expired {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		readers.Go(func() { expired[i], seen[i] = followValue(t, h, []string{"0", "1", "2"}[i%3], r, done, last) })
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for index := uint64(1); index <= last; index++ {
		if r.IntN(3000) == 0 && index < last-10 {
			index += r.Uint64N(5)
			h.OnRestore(index)
			continue
		}
		publish(h, index)
	}
	close(done)
	readers.Wait()
	t.Logf("expired %d, seen %d", expired, seen)
}

// followValue reads until last, and checks order, completeness and positions.
func followValue(t *testing.T, h *Hub, value string, r *rand.Rand, done <-chan struct{}, last uint64) (expired, seen int) {
	position := uint64(0) // all that are wanted up to it have been seen
	check := func(index uint64) {
		for missing := position + 1; missing < index; missing++ {
			if rest(missing) == value {
				t.Errorf("value %s: %d has not been seen before %d", value, missing, index)
				return
			}
		}
	}
	for position < last-3 && !t.Failed() {
		s, err := h.Select(pods, position, value, byRest)
		for err == nil && position < last-3 && !t.Failed() && r.IntN(300) != 0 {
			var events []fsm.Event
			if events, err = s.TryNext(); err != nil {
				break
			}
			for _, event := range events {
				if event.Index <= position {
					t.Errorf("value %s: %d after %d", value, event.Index, position)
				}
				if rest(event.Index) == value {
					check(event.Index)
					seen++
					position = event.Index
				}
			}
			if p := s.Position(); p > position {
				check(p + 1)
				position = p
			}
			if r.IntN(3) == 0 {
				select {
				case <-s.Wait():
				case <-done:
				}
			}
		}
		if s != nil {
			s.Close()
		}
		if err != nil {
			expired++
			position = h.Index() // a list
		}
	}
	return expired, seen
}
