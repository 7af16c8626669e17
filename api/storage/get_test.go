package storage_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/api/storage"
)

// TestGetVersions asks a node that has version 1 for an object that is at
// version 2, in every way that a get may be asked for.
func TestGetVersions(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, version string
		arrives       time.Duration // version 2 gets to the node after this; 0 is never
		code          int
		label         string
		asks          int           // read indexes
		takes         time.Duration // at least
	}{
		{name: "unset is the latest", version: "", code: 200, label: "2", asks: 1},
		{name: "0 is anything", version: "0", code: 200, label: "1"},
		{name: "a version that is there", version: "1", code: 200, label: "1"},
		{name: "a version that comes in time", version: "2", arrives: 2 * time.Second, code: 200, label: "2", takes: 2 * time.Second},
		{name: "a version that comes too late", version: "2", arrives: 4 * time.Second, code: 504, takes: 3 * time.Second},
		{name: "a version that never comes", version: "99", code: 504, takes: 3 * time.Second},
		{name: "not a number", version: "abc", code: 400},
		{name: "negative", version: "-1", code: 400},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, late := newReplicas(1)
				store := late[0].store(t)
				mustCreate(t, leader.store(t), labelled("a", "1"))
				late[0].catchUp()
				mustSet(t, leader.store(t), "a", label("2"))
				if row.arrives > 0 {
					time.AfterFunc(row.arrives, late[0].catchUp)
				}
				before, start := leader.asked(), time.Now()
				pod, err := get(store, "a", row.version)
				if code(err) != row.code || pod.Labels["l"] != row.label {
					t.Errorf("got %d %v and label %q, want %d and %q", code(err), err, pod.Labels["l"], row.code, row.label)
				}
				if asks := leader.asked() - before; asks != row.asks {
					t.Errorf("asked for a read index %d times, want %d", asks, row.asks)
				}
				if took := time.Since(start); took != row.takes {
					t.Errorf("took %s, want %s", took, row.takes)
				}
				time.Sleep(row.arrives) // synctest's clock: let the late entry come
			})
		})
	}
}

// TestTooLargeVersion is what clients look at: the status, when to come back,
// and the cause that tells this from other timeouts.
func TestTooLargeVersion(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options []func(*storage.Config)
		retry   int
	}{
		"cached":   {nil, 1},
		"uncached": {[]func(*storage.Config){uncached}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, _ := newReplicas(0)
				_, err := get(podStore(t, leader.backend(), "/core", codec, row.options...), "a", "7")
				if !upstream.IsTooLargeResourceVersion(err) {
					t.Errorf("%v is not a too large version", err)
				}
				if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != row.retry {
					t.Errorf("come back after %d s, want %d", seconds, row.retry)
				}
			})
		})
	}
}

func TestGetNothing(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	if _, err := get(store, "a", ""); !upstream.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
	out := newPod("left over")
	if err := store.Get(context.Background(), keyOf("a"), upstream.GetOptions{IgnoreNotFound: true}, out); err != nil || out.Name != "" {
		t.Errorf("got %v and %q, want an empty object", err, out.Name)
	}
	other := &example.ReplicaSet{}
	mustCreate(t, store, newPod("a"))
	if err := store.Get(context.Background(), keyOf("a"), upstream.GetOptions{}, other); err == nil {
		t.Error("a pod was read as a replica set")
	}
}

func labelled(name, value string) *example.Pod {
	pod := newPod(name)
	label(value)(pod)
	return pod
}
