package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 100}, {64 << 20, 100}, {128 << 20, 62}, {1 << 30, 29}, {1 << 40, 25}} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

// TestHeapRoom: a heap has less room in proportion when it is large, and has it back when it is not.
func TestHeapRoom(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer keepHeapRoom()()
	state := make([]byte, 256<<20)
	awaitPercent(t, func(percent uint64) bool { return percent < 50 })
	runtime.KeepAlive(state)
	awaitPercent(t, func(percent uint64) bool { return percent > 50 })
}

// awaitPercent collects garbage until the percentage is what is wanted.
func awaitPercent(t *testing.T, wanted func(uint64) bool) {
	t.Helper()
	until(t, func() error {
		runtime.GC()
		if percent := measured("/gc/gogc:percent"); !wanted(percent) {
			return fmt.Errorf("the heap has room for %d %%", percent)
		}
		return nil
	})
}
