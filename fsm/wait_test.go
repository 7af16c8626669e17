package fsm

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

func TestWaitIndex(t *testing.T) {
	f := New()
	const waiting, indexes = 2000, 50
	var done sync.WaitGroup
	for i := range waiting {
		index := uint64(i * 7919 % (indexes + 1)) // all of them, in no order
		done.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%4 == 0 {
				go cancel()
			}
			err := f.WaitIndex(ctx, index)
			switch {
			case err == nil && f.Index() < index:
				t.Errorf("woken for %d at %d", index, f.Index())
			case err != nil && (i%4 != 0 || !errors.Is(err, context.Canceled)):
				t.Errorf("error %v", err)
			}
		})
	}
	for i := range uint64(indexes) {
		f.ApplyBatch([]*raft.Log{{Index: i + 1, Type: raft.LogConfiguration}})
	}
	done.Wait()
	if n := len(f.waiting.heap); n != 0 {
		t.Errorf("%d left in the heap", n)
	}
}

func TestWaitIndexWokenByRestore(t *testing.T) {
	from, to := New(), New()
	for range 5 {
		apply(from, create("/r/a", ""))
	}
	w := to.waiting.add(5)
	mustRestore(t, to, persist(t, from))
	<-w.reached
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := to.WaitIndex(ctx, 6); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := to.WaitIndex(ctx, 5); err != nil {
		t.Errorf("error %v for an index already there", err)
	}
}
