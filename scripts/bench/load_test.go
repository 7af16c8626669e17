package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func silent(int) {}

func TestLoadDoesEachOnce(t *testing.T) {
	var mu sync.Mutex
	done := map[int]int{}
	took, err := load{count: 100, do: func(_ context.Context, w, i int) error {
		mu.Lock()
		defer mu.Unlock()
		done[i]++
		if w < 0 || w >= 7 {
			t.Errorf("worker %d of 7", w)
		}
		return nil
	}}.run(context.Background(), 7, silent)
	if err != nil || len(took) != 100 || len(done) != 100 {
		t.Errorf("%d took a time, %d different were done: %v", len(took), len(done), err)
	}
}

func TestLoadStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	took, err := load{count: 1000, do: func(ctx context.Context, _, i int) error {
		if i == 5 {
			return broken
		}
		return nil
	}}.run(context.Background(), 1, silent)
	if !errors.Is(err, broken) || len(took) != 5 {
		t.Errorf("%d were done, %v", len(took), err)
	}
}

func TestLoadKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told int
		took, err := load{count: 51, every: 100 * time.Millisecond, do: func(context.Context, int, int) error { return nil }}.
			run(t.Context(), 4, func(int) { told++ })
		if elapsed := time.Since(begin); err != nil || len(took) != 51 || elapsed != 5*time.Second {
			t.Errorf("%d in %v: %v", len(took), elapsed, err)
		}
		if told == 0 {
			t.Error("it did not say how far it is")
		}
	})
}
