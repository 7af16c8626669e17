package storage_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// patience is how long a test waits for an event that is due at once.
const patience = 20 * time.Second

// mustWatch watches all pods; opts need not say so.
func mustWatch(t testing.TB, store upstream.Interface, opts upstream.ListOptions) apiwatch.Interface {
	t.Helper()
	return mustWatchIn(t, context.Background(), store, opts)
}

func mustWatchIn(t testing.TB, ctx context.Context, store upstream.Interface, opts upstream.ListOptions) apiwatch.Interface {
	t.Helper()
	w, err := store.Watch(ctx, "/pods/", complete(opts))
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event as text: "ADDED a=1@5" is pod a with label 1 at
// version 5, "closed" is the end.
func next(t testing.TB, w apiwatch.Interface) string {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			return "closed"
		}
		return describe(t, event)
	case <-time.After(patience):
		t.Fatalf("no event after %s", patience)
		return ""
	}
}

func describe(t testing.TB, event apiwatch.Event) string {
	t.Helper()
	if status, ok := event.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %d", event.Type, status.Code)
	}
	pod := podOf(t, event)
	switch {
	case event.Type != apiwatch.Bookmark:
		return fmt.Sprintf("%s %s=%s@%s", event.Type, pod.Name, pod.Labels["l"], pod.ResourceVersion)
	case pod.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		return "END @" + pod.ResourceVersion
	}
	return "BOOKMARK @" + pod.ResourceVersion
}

func podOf(t testing.TB, event apiwatch.Event) *example.Pod {
	t.Helper()
	obj := event.Object
	if shared, ok := obj.(runtime.CacheableObject); ok {
		obj = shared.GetObject()
	}
	pod, ok := obj.(*example.Pod)
	if !ok {
		t.Fatalf("%s event with a %T", event.Type, obj)
	}
	return pod
}

// expect reads as many events as want has, separated by ", ".
func expect(t testing.TB, w apiwatch.Interface, want string) {
	t.Helper()
	var got []string
	for range strings.Split(want, ", ") {
		got = append(got, next(t, w))
	}
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
}

// event is short for what a watch sends.
type event = apiwatch.Event

// count adds one to label n.
func count(pod *example.Pod) {
	n, _ := strconv.Atoi(pod.Labels["n"])
	pod.Labels = map[string]string{"n": text(n + 1)}
}

func text(n int) string { return strconv.Itoa(n) }
