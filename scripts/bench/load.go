package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"kontiki/scripts/servers"
)

// A target is servers under load, and the workers' connections to them.
type target struct {
	group   *servers.Group
	clients []*client                 // one a worker; worker i's node is i modulo the nodes
	filled  bool                      // the pods are there
	leases  [][]*coordinationv1.Lease // of each worker
}

// A load is what to do how often. Workers take the numbers below count in order.
type load struct {
	count int
	do    func(ctx context.Context, w, i int) error
	every time.Duration // at most one start in this time; 0: as fast as it goes
}

// run puts the load on t, and returns how long each operation took, the shortest first.
func (l load) run(ctx context.Context, workers int, tell func(done int)) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next, done atomic.Int64
		running    sync.WaitGroup
		took       = make([][]time.Duration, workers)
		begin      = time.Now()
	)
	for w := range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= l.count || !await(ctx, begin.Add(time.Duration(i)*l.every)) {
					return
				}
				start := time.Now()
				if err := l.do(ctx, w, i); err != nil {
					cancel(fmt.Errorf("operation %d of %d: %w", i+1, l.count, err))
					return
				}
				took[w] = append(took[w], time.Since(start))
				done.Add(1)
			}
		})
	}
	stop := every(2*time.Second, func() { tell(int(done.Load())) })
	running.Wait()
	stop()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, context.Cause(ctx)
}

// await returns whether it got to that time before ctx ended.
func await(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(left):
		return true
	}
}

// every calls f now and then until the function that it returns is called.
func every(interval time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// measured runs a load and puts what it took, of time and of the servers' CPU, into a result.
func (b *bench) measured(ctx context.Context, p phase, t *target, l load, workers int) (result, error) {
	pids := t.group.Pids()
	before, err := cpuTime(pids)
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	took, err := l.run(ctx, workers, func(done int) { b.tell(p, t, fmt.Sprintf("%d of %d", done, l.count)) })
	elapsed := time.Since(start)
	after, cpuErr := cpuTime(pids)
	if err := errors.Join(err, cpuErr); err != nil {
		return result{}, err
	}
	return result{
		Operations: len(took),
		PerSecond:  float64(len(took)) / elapsed.Seconds(),
		P50:        milliseconds(percentile(took, 50)),
		P99:        milliseconds(percentile(took, 99)),
		CPU:        milliseconds(after-before) / float64(len(took)),
	}, nil
}

// tell says how far it is.
func (b *bench) tell(p phase, t *target, what string) {
	fmt.Fprintf(os.Stderr, "%-10s %-15s round %d of %d: %s\n", p.name, t.group.Name, b.round, b.Rounds, what)
}
