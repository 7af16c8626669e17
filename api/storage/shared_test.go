package storage_test

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestCallersOwnWhatTheyGet has callers write all over what they were given,
// while others read. The race detector sees what is shared and should not be;
// without it, what is stored must have stayed as it was.
func TestCallersOwnWhatTheyGet(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	pod := labelled("a", "1")
	pod.Annotations = map[string]string{"k": "v"}
	want := mustCreate(t, store, pod)
	callers := map[string]func(){
		"get": func() {
			got, err := get(store, "a", "0")
			spoil(t, got, err)
		},
		"update that fails": func() {
			err := guaranteed(store, &example.Pod{}, false, nil, func(got *example.Pod) (*example.Pod, error) {
				spoil(t, got, nil)
				return nil, errUnreadable
			})
			if err != errUnreadable {
				t.Errorf("update: %v", err)
			}
		},
		"update that changes nothing": func() {
			out := &example.Pod{}
			spoil(t, out, set(store, "a", out, func(*example.Pod) {}))
		},
		"deletion that is refused": func() {
			refuse := func(_ context.Context, obj runtime.Object) error {
				spoil(t, obj.(*example.Pod), nil)
				return errUnreadable
			}
			err := store.Delete(context.Background(), keyOf("a"), &example.Pod{}, nil, refuse, nil, upstream.DeleteOptions{})
			if err != errUnreadable {
				t.Errorf("delete: %v", err)
			}
		},
		"watch": func() {
			w := mustWatch(t, store, upstream.ListOptions{})
			spoil(t, podOf(t, <-w.ResultChan()), nil)
		},
		"list of others": func() {
			if got := names(mustList(t, store, upstream.ListOptions{}).Items); got != "a=1 " {
				t.Errorf("listed %s", got)
			}
		},
	}
	var running sync.WaitGroup
	for _, call := range callers {
		for range 4 {
			running.Go(call)
		}
	}
	running.Wait()
	got, err := get(store, "a", "")
	if diff := difference(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// spoil writes to everything that an object points to.
func spoil(t *testing.T, pod *example.Pod, err error) {
	if err != nil || pod.Annotations["k"] != "v" || pod.Labels["l"] != "1" {
		t.Errorf("somebody else's changes are seen: %v %v %v", pod.Labels, pod.Annotations, err)
		return
	}
	pod.Annotations["k"], pod.Labels["l"], pod.Name = "spoilt", "spoilt", "spoilt"
}
