package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// production gives benchmarks the settings of production.
func production(_ int, cfg *cluster.Config) { cfg.Tuning = cluster.DefaultConfig().Tuning }

func BenchmarkPropose(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		c := clustertest.New(b, nodes, production)
		at := map[string]int{"leader": c.WaitLeader()}
		if nodes > 1 {
			c.WaitVoters(at["leader"], nodes)
			at["follower"] = c.Follower()
		}
		for where, i := range at {
			for _, goroutines := range []int{1, 32, 256} {
				name := fmt.Sprintf("nodes=%d/at=%s/goroutines=%d", nodes, where, goroutines)
				b.Run(name, func(b *testing.B) { benchPropose(b, c.Node(i), goroutines) })
			}
		}
	}
}

var benchKeys atomic.Uint64

// benchValue is of 1 KiB and like an object: names that repeat, and values that do not.
func benchValue() (value []byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for len(value) < 1024 {
		value = fmt.Appendf(value, `{"k:{\"type\":\"Ready\"}":"%016x"}`, random.Uint64())
	}
	return value[:1024]
}

func benchPropose(b *testing.B, node *cluster.Node, goroutines int) {
	value := benchValue()
	inParallel(b, goroutines, func() error {
		cmd := fsm.Command{Op: fsm.OpCreate, Key: fmt.Sprintf("/bench/%d", benchKeys.Add(1)), Value: value}
		_, err := node.Propose(context.Background(), cmd)
		return err
	})
}

func BenchmarkReadIndex(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		c := clustertest.New(b, nodes, production)
		at := map[string]int{"leader": c.WaitLeader()}
		if nodes > 1 {
			at["follower"] = c.Follower()
		}
		for where, i := range at {
			for _, goroutines := range []int{1, 256} {
				name := fmt.Sprintf("nodes=%d/at=%s/goroutines=%d", nodes, where, goroutines)
				b.Run(name, func(b *testing.B) {
					inParallel(b, goroutines, func() error { return c.Node(i).Ready(context.Background()) })
				})
			}
		}
	}
}

// inParallel has b.N calls of f made by so many goroutines.
func inParallel(b *testing.B, goroutines int, f func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, goroutines)
	b.ResetTimer()
	for range goroutines {
		go func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range goroutines {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
