package watch

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"kontiki/fsm"
)

func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := NewHub(Config{MaxEvents: 1 << 30})
			ctx, cancel := context.WithCancel(context.Background())
			var done, delivered sync.WaitGroup
			for range n {
				c := mustSubscribe(b, h, pods, 0)
				done.Go(func() {
					for {
						events, err := c.Next(ctx)
						if err != nil {
							return
						}
						delivered.Add(-len(events))
					}
				})
			}
			b.ReportAllocs()
			index := uint64(0)
			for b.Loop() { // one event to all, and back
				index++
				delivered.Add(n)
				publish(h, index)
				delivered.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cursor")
			cancel()
			done.Wait()
		})
	}
}

// BenchmarkPublish publishes to cursors that all lag: no one is woken.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := NewHub(Config{})
			for range n {
				defer mustSubscribe(b, h, pods, 0).Close()
			}
			ev, index := at(pods, 1, 1), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				index++
				ev.Index = index
				h.OnApply(index, []fsm.Event{ev})
			}
		})
	}
}
