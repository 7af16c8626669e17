package storage_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestCluster has three real nodes: what other tests show on late replicas, and
// what needs a network. The steps are in order, the last one loses the majority.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	var stores []upstream.Interface
	for _, n := range nodes {
		stores = append(stores, podStore(t, n.backend(), "/core", codec))
	}
	t.Run("a write is seen by the next one", func(t *testing.T) { relay(t, stores) })
	t.Run("pages are one state", func(t *testing.T) {
		checkPages(t, stores, nodes[0].history, "/core/pods/", rand.Uint64())
	})
	t.Run("all watch the same", func(t *testing.T) { watchTogether(t, stores) })
	t.Run("too large", func(t *testing.T) { writeTooLarge(t, stores) })
	t.Run("no majority", func(t *testing.T) { loseMajority(t, nodes, stores[1]) })
}

// relay writes through one node after the other, each write on top of the last
// one, with nothing in between that waits.
func relay(t *testing.T, stores []upstream.Interface) {
	mustCreate(t, stores[0], newPod("relay"))
	for i := range 60 {
		out := mustSet(t, stores[(i+1)%3], "relay", count)
		if out.Labels["n"] != text(i+1) {
			t.Fatalf("write %d made it %s", i+1, out.Labels["n"])
		}
		if got, err := get(stores[(i+2)%3], "relay", ""); err != nil || got.ResourceVersion != out.ResourceVersion {
			t.Fatalf("the latest is %s on another node, %v; want %s", got.ResourceVersion, err, out.ResourceVersion)
		}
	}
	mustDelete(t, stores[1], "relay")
	if err := remove(stores[2], "relay", &example.Pod{}, nil); !upstream.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
	mustCreate(t, stores[0], newPod("relay"))
}

// watchTogether compares the events of all nodes.
func watchTogether(t *testing.T, stores []upstream.Interface) {
	start := mustList(t, stores[0], upstream.ListOptions{}).ResourceVersion
	const writes = 100
	var streams []string
	for i := range writes {
		mustSet(t, stores[i%3], "relay", count)
	}
	for _, store := range stores {
		w := mustWatch(t, store, upstream.ListOptions{ResourceVersion: start})
		var all []string
		for range writes {
			all = append(all, next(t, w))
		}
		streams = append(streams, strings.Join(all, "\n"))
	}
	if streams[0] != streams[1] || streams[0] != streams[2] {
		t.Errorf("the streams differ:\n%s", strings.Join(streams, "\n\n"))
	}
}

// writeTooLarge is more than a node takes, on the leader and through a follower.
func writeTooLarge(t *testing.T, stores []upstream.Interface) {
	for i, store := range stores {
		pod := newPod("large")
		pod.Annotations = map[string]string{"k": strings.Repeat("x", 4<<20)}
		err := store.Create(context.Background(), keyOf("large"), pod, &example.Pod{}, 0)
		if code(err) != 413 {
			t.Errorf("node %d: got %d %v, want 413", i, code(err), err)
		}
	}
}

// loseMajority leaves one node: it still answers what may be old.
func loseMajority(t *testing.T, nodes []*node, store upstream.Interface) {
	w := mustWatch(t, store, upstream.ListOptions{ResourceVersion: "0"})
	nodes[0].cluster.Abort()
	nodes[2].cluster.Abort()
	for verb, do := range map[string]func(context.Context) error{
		"get": func(ctx context.Context) error {
			return store.Get(ctx, keyOf("relay"), upstream.GetOptions{}, &example.Pod{})
		},
		"list": func(ctx context.Context) error {
			return store.GetList(ctx, "/pods/", complete(upstream.ListOptions{}), &example.PodList{})
		},
		"create": func(ctx context.Context) error {
			return store.Create(ctx, keyOf("late"), newPod("late"), &example.Pod{}, 0)
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		err := do(ctx)
		cancel()
		// The first write may have gone to the leader that was about to die.
		seconds, _ := apierrors.SuggestsClientDelay(err)
		if c := code(err); seconds != 1 || c != 503 && !(verb == "create" && c == 504) {
			t.Errorf("%s: got %d %v, come back after %d s; want 503, 1 s", verb, c, err, seconds)
		}
	}
	if got, err := get(store, "relay", "0"); err != nil || got.Name != "relay" {
		t.Errorf("get of any version: %v", err)
	}
	expectPod(t, w, "relay")
}

// expectPod reads events until one is of that pod.
func expectPod(t *testing.T, w interface{ ResultChan() <-chan event }, name string) {
	t.Helper()
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open || e.Type == "ERROR" {
				t.Fatalf("the watch ended before %s came", name)
			}
			if podOf(t, e).Name == name {
				return
			}
		case <-time.After(patience):
			t.Fatalf("%s did not come within %s", name, patience)
		}
	}
}
