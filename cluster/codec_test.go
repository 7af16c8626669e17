package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"
)

func FuzzFrame(f *testing.F) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	writeFrame(w, frame{id: 7, kind: askPropose, payload: []byte("payload")})
	w.Flush()
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 3})
	f.Add([]byte{255, 255, 255, 255, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1000
		got, err := readFrame(bufio.NewReader(bytes.NewReader(data)), limit)
		if err != nil {
			return
		}
		if len(got.payload) > limit {
			t.Fatalf("a payload of %d bytes", len(got.payload))
		}
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		writeFrame(w, got)
		w.Flush()
		if !bytes.HasPrefix(data, b.Bytes()) {
			t.Fatalf("%x was read and written as %x", data, b.Bytes())
		}
	})
}

func FuzzMessages(f *testing.F) {
	meta := memberMeta{peerAddr: "a:1", apiAddr: "b:2", version: "v", expect: 3, hasState: true, founding: "id"}
	who := founders{{"n1", "a:1"}, {"n2", "b:2"}}
	status := peerStatus{hasState: true, applied: 77, suffrage: suffrageVoter}
	mark := commitMark{1, 2, 3}
	f.Add(meta.append(nil))
	f.Add(who.append(nil))
	f.Add(status.append(nil))
	f.Add(mark.append(nil))
	f.Add(agreement{opAgree, "id", who}.append(nil))
	f.Add(memberState{status, true, 6, time.Second, "id", "v"}.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decodeMeta(data); err == nil {
			if again, err := decodeMeta(m.append(nil)); err != nil || again != m {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
		if w, err := decodeFounders(data); err == nil && !bytes.Equal(w.append(nil), data) {
			t.Errorf("%+v", w)
		}
		if s, err := decodePeerStatus(data); err == nil && !bytes.Equal(s.append(nil), data) {
			t.Errorf("%+v", s)
		}
		if a, err := decodeAgreement(data); err == nil && !bytes.Equal(a.append(nil), data) {
			t.Errorf("%+v", a)
		}
		if s, err := decodeMemberState(data); err == nil {
			if again, err := decodeMemberState(s.append(nil)); err != nil || again != s {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
		if m, err := decodeCommitMark(data); err == nil && !bytes.Equal(m.append(nil), data) {
			t.Errorf("%+v", m)
		}
	})
}

func TestFoundersRoundTrip(t *testing.T) {
	want := founders{{"a", "x:1"}, {"b", "y:2"}}
	if got, err := decodeFounders(want.append(nil)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSemaphore(t *testing.T) {
	s := newSemaphore(10)
	ctx := context.Background()
	if err := s.acquire(ctx, 8); err != nil {
		t.Fatal(err)
	}
	// A large claim waits, and a small one behind it does too.
	order := make(chan int, 2)
	var wg sync.WaitGroup
	wg.Go(func() { s.acquire(ctx, 10); order <- 10 })
	waitFor(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiting.Len() == 1 })
	wg.Go(func() { s.acquire(ctx, 1); order <- 1 })
	waitFor(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiting.Len() == 2 })
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.acquire(short, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a claim with no time: %v", err)
	}
	s.release(8)
	if first := <-order; first != 10 {
		t.Errorf("the small claim overtook")
	}
	s.release(10)
	wg.Wait()
	s.release(1)
	if s.free != 10 {
		t.Errorf("%d of 10 are free at the end", s.free)
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-deadline:
			t.Fatal("it does not happen")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestSharedJoinsTheNextQuestion: nobody gets the answer to a question asked before they came.
func TestSharedJoinsTheNextQuestion(t *testing.T) {
	asked, answers := make(chan struct{}), make(chan uint64)
	s := &shared{ask: func() (uint64, error) { asked <- struct{}{}; return <-answers, nil }}
	got := make(chan uint64, 10)
	join := func() { index, _ := s.join(context.Background()); got <- index }
	go join()
	<-asked
	for range 5 { // while the first question is on its way
		go join()
	}
	waitFor(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.next != nil })
	answers <- 1
	if first := <-got; first != 1 {
		t.Errorf("the first caller got %d", first)
	}
	<-asked
	answers <- 2
	for i := range 5 {
		select {
		case index := <-got:
			if index < 2 {
				t.Errorf("a later caller got the answer of the earlier question")
			}
		case <-asked: // a caller that came after the second question was asked
			answers <- 3
			if index := <-got; index < 2 {
				t.Errorf("caller %d got %d", i, index)
			}
		}
	}
}
