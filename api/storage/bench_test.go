package storage_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// onNodes runs a benchmark on the leader and through a follower of three nodes.
func onNodes(b *testing.B, f func(*testing.B, upstream.Interface)) {
	for _, role := range []string{"leader", "follower"} {
		b.Run(role, func(b *testing.B) {
			nodes := startNodes(b, 3)
			n := nodes[0]
			if role == "follower" {
				n = nodes[2]
			}
			store := podStore(b, n.backend(), "/core", codec)
			b.ReportAllocs()
			f(b, store)
		})
	}
}

func bigPod(name string) *example.Pod {
	pod := labelled(name, "1")
	pod.Annotations = map[string]string{"k": strings.Repeat("x", 1000)}
	return pod
}

func BenchmarkGet(b *testing.B) {
	for name, version := range map[string]string{"any": "0", "latest": ""} {
		b.Run(name, func(b *testing.B) {
			onNodes(b, func(b *testing.B, store upstream.Interface) {
				mustCreate(b, store, bigPod("a"))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := get(store, "a", version); err != nil {
							b.Error(err)
						}
					}
				})
			})
		})
	}
}

// BenchmarkCreate has 64 clients a CPU, as a busy API has: proposals share log
// batches and disk writes.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clientspercpu=%d", clients), func(b *testing.B) {
			onNodes(b, func(b *testing.B, store upstream.Interface) {
				b.SetParallelism(clients)
				var last atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					id := last.Add(1)
					for i := 0; pb.Next(); i++ {
						name := fmt.Sprintf("p%d-%d", id, i)
						if err := store.Create(context.Background(), keyOf(name), bigPod(name), &example.Pod{}, 0); err != nil {
							b.Error(err)
						}
					}
				})
			})
		})
	}
}

// BenchmarkList lists 5000 objects of 1 kB, decoded before.
func BenchmarkList(b *testing.B) {
	leader, _ := newReplicas(0)
	store := leader.store(b)
	for i := range 5000 {
		mustCreate(b, store, bigPod(fmt.Sprintf("p%04d", i)))
	}
	for name, opts := range map[string]upstream.ListOptions{
		"all":      {ResourceVersion: "0"},
		"selected": {ResourceVersion: "0", Predicate: byName("p2500")},
		"exact":    {ResourceVersion: "4000", ResourceVersionMatch: exact},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustList(b, store, opts)
			}
		})
	}
}

// BenchmarkFanOut is one write that 100 watches see.
func BenchmarkFanOut(b *testing.B) {
	leader, _ := newReplicas(0)
	store := leader.store(b)
	mustCreate(b, store, bigPod("a"))
	var watches []apiwatch.Interface
	for range 100 {
		watches = append(watches, mustWatch(b, store, upstream.ListOptions{ResourceVersion: "1"}))
	}
	b.ReportAllocs()
	for b.Loop() {
		mustSet(b, store, "a", count)
		for _, w := range watches {
			<-w.ResultChan()
		}
	}
}

// BenchmarkSelectiveFanOut is one write among so many watches that each select one object, as kubelets do,
// so that one of them sees it: unrelated watches are not to make a write dearer.
func BenchmarkSelectiveFanOut(b *testing.B) {
	for _, watches := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("watches=%d", watches), func(b *testing.B) {
			leader, _ := newReplicas(0)
			store := leader.store(b)
			mustCreate(b, store, bigPod("a"))
			seen := mustWatch(b, store, upstream.ListOptions{ResourceVersion: "1", Predicate: byName("a")})
			for i := range watches - 1 {
				mustWatch(b, store, upstream.ListOptions{ResourceVersion: "1", Predicate: byName(fmt.Sprintf("b%d", i))})
			}
			b.ReportAllocs()
			for b.Loop() {
				mustSet(b, store, "a", count)
				<-seen.ResultChan()
			}
		})
	}
}

// BenchmarkUpstream is upstream's: lists between writes.
func BenchmarkUpstream(b *testing.B) {
	for _, match := range []metav1.ResourceVersionMatch{notOlderThan, exact} {
		b.Run(string(match), func(b *testing.B) {
			leader, _ := newReplicas(0)
			storagetesting.RunBenchmarkStoreListCreate(context.Background(), b, leader.store(b), match)
		})
	}
}
