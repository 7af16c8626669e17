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
	// leastChange is by how much the percentage must change to be set anew.
	leastChange = 3
)

// gcPercent is for how much garbage there is room in a heap before it is collected, in percent of what
// lives there. Go's default is 100, whatever lives, as a collection costs in proportion to that. Of a
// large state it does not: most bytes are of values without a pointer, which are not looked at. What is
// decoded has many, but its caches are bounded.
func gcPercent(live uint64) int {
	if live <= fullRoom {
		return 100
	}
	return int(100 * (fullRoom + (live-fullRoom)/moreRoom) / live)
}

// keepHeapRoom keeps the percentage right from one collection to the next, unless the environment has
// one, and returns what ends that. What the start reads and drops is not worth a collection more: begin
// after it.
func keepHeapRoom() (stop func()) {
	stopped := new(atomic.Bool)
	if os.Getenv("GOGC") == "" {
		setHeapRoom(stopped)
	}
	return func() { stopped.Store(true) }
}

// setHeapRoom is called after a collection, at most once for each: it takes with it an object that an
// earlier call left.
func setHeapRoom(stopped *atomic.Bool) {
	if stopped.Load() {
		return
	}
	want, is := gcPercent(measured("/gc/heap/live:bytes")), int(measured("/gc/gogc:percent"))
	if max(want-is, is-want) >= leastChange {
		debug.SetGCPercent(want)
	}
	type object struct{ _ *int } // with a pointer: what has none shares memory with others that live on
	runtime.AddCleanup(new(object), setHeapRoom, stopped)
}

// measured is a number that the runtime keeps.
func measured(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
