package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// fullRoom is up to how many bytes that live the heap has room for as much garbage.
	fullRoom = 64 << 20
	// moreRoom is for how many bytes beyond that it has room for one more.
	moreRoom = 4
	// leastChange of the percentage is worth it: to set it stops the program for a moment.
	leastChange = 3
)

// gcPercent is for how much garbage there is room in a heap before it is collected, in percent of what
// lives there. Go's default is 100, whatever lives, as a collection costs in proportion to that. Of a
// large state it does not: most bytes are of values without a pointer, which are not looked at.
func gcPercent(live uint64) int {
	if live <= fullRoom {
		return 100
	}
	return int(100 * (fullRoom + (live-fullRoom)/moreRoom) / live)
}

// heapRoom keeps the percentage right, from one collection to the next.
type heapRoom struct {
	stopped atomic.Bool
	percent int // that is set
}

// keepHeapRoom begins it, unless the environment has a percentage, and returns what ends it.
func keepHeapRoom() (stop func()) {
	h := &heapRoom{percent: 100}
	if os.Getenv("GOGC") == "" {
		h.collected()
	}
	return func() { h.stopped.Store(true) }
}

// collected is called after each collection: it takes with it an object that the one before left.
func (h *heapRoom) collected() {
	if h.stopped.Load() {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if percent := gcPercent(sample[0].Value.Uint64()); max(percent-h.percent, h.percent-percent) >= leastChange {
		h.percent = percent
		debug.SetGCPercent(percent)
	}
	type object struct{ _ *int } // with a pointer: what has none shares memory with others that live on
	runtime.AddCleanup(new(object), (*heapRoom).collected, h)
}
