package fsm

import (
	"container/heap"
	"context"
	"sync"
)

// WaitIndex returns nil once View().Index() >= index, or the error of ctx. Not
// every log index reaches the FSM (raft keeps no-ops and barriers to itself):
// wait only for an index that a Result or a View has named.
func (f *FSM) WaitIndex(ctx context.Context, index uint64) error {
	if f.Index() >= index {
		return nil
	}
	w := f.waiting.add(index)
	// The index may have been reached before w was in the heap, and then
	// nobody will wake it: look again.
	if f.Index() >= index {
		f.waiting.remove(w)
		return nil
	}
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		f.waiting.remove(w)
		return ctx.Err()
	}
}

// waiter is one caller of WaitIndex.
type waiter struct {
	index   uint64
	slot    int // in the heap, -1 when it is not there
	reached chan struct{}
}

// waiters is a heap of those who wait, the lowest index first, so that waking
// costs per waiter woken and nothing per waiter that goes on waiting.
type waiters struct {
	mu   sync.Mutex
	heap waitHeap // guarded by mu
}

func (w *waiters) add(index uint64) *waiter {
	wt := &waiter{index: index, reached: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	heap.Push(&w.heap, wt)
	return wt
}

func (w *waiters) remove(wt *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wt.slot >= 0 {
		heap.Remove(&w.heap, wt.slot)
	}
}

// release wakes all who wait for index or less. The view must be swapped before.
func (w *waiters) release(index uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.heap) > 0 && w.heap[0].index <= index {
		close(heap.Pop(&w.heap).(*waiter).reached)
	}
}

// waitHeap implements heap.Interface.
type waitHeap []*waiter

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].index < h[j].index }

func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

// Push adds x at the end.
func (h *waitHeap) Push(x any) {
	w := x.(*waiter)
	w.slot = len(*h)
	*h = append(*h, w)
}

// Pop removes the last one.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.slot = -1
	return w
}
