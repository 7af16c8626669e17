package storage_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// TestStaleView has a node decide on an object of which it has an older state, or
// none, or one that is gone. What it does must be right for the latest state.
func TestStaleView(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name         string
		early, after func(testing.TB, upstream.Interface) // what the node has seen, what it has not
		do           func(upstream.Interface, *example.Pod) error
		code         int
		want         string // "label@version" of the answer
		entries      int    // proposals of the node
	}{
		{"update", exists, changed, setLabel("3"), 200, "3@4", 2},
		{"update what was created", nil, exists, setLabel("3"), 200, "3@2", 1},
		{"update what was deleted", exists, gone, setLabel("3"), 404, "", 1},
		{"update what was deleted, or create it", exists, gone, putLabel("3"), 200, "3@4", 2},
		{"update what was created anew", exists, anew, setLabel("3"), 200, "3@5", 2},
		{"update to what it was before", exists, changed, setLabel("1"), 200, "1@3", 1},
		{"update to what it has become", exists, changed, setLabel("2"), 200, "2@2", 1},
		{"update at the latest version", exists, changed, setAt("2", "3"), 200, "3@3", 1},
		{"update at the older version", exists, changed, setAt("1", "3"), 409, "", 1},
		{"update that is refused for the older state", exists, changed, setFrom("2", "3"), 200, "3@3", 1},
		{"update that is refused for the latest state", exists, changed, setFrom("1", "3"), 0, "", 1},
		{"delete", exists, changed, removeAny, 200, "2@4", 2},
		{"delete what was created", nil, exists, removeAny, 200, "1@2", 1},
		{"delete what was deleted", exists, gone, removeAny, 404, "", 1},
		{"delete the latest version", exists, changed, removeAt("2"), 200, "2@3", 1},
		{"delete the older version", exists, changed, removeAt("1"), 409, "", 1},
		{"delete the uid that is gone", exists, anew, removeUID("first"), 409, "", 1},
		{"delete the uid that is there", exists, anew, removeUID("second"), 200, "2@4", 1},
		{"create what exists", nil, exists, createAny, 409, "", 1},
		{"create what was deleted", exists, gone, createAny, 200, "4@3", 1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			leader, late := newReplicas(1)
			if row.early != nil {
				row.early(t, leader.store(t))
			}
			late[0].catchUp()
			row.after(t, leader.store(t))
			out := &example.Pod{}
			before := leader.length()
			err := row.do(late[0].store(t), out)
			if code(err) != row.code {
				t.Fatalf("got %d %v, want %d", code(err), err, row.code)
			}
			if got := out.Labels["l"] + "@" + out.ResourceVersion; err == nil && got != row.want {
				t.Errorf("answered %s, want %s", got, row.want)
			}
			if entries := leader.length() - before; entries > row.entries {
				t.Errorf("it took %d entries, want at most %d", entries, row.entries)
			}
		})
	}
}

func exists(t testing.TB, store upstream.Interface) {
	pod := labelled("a", "1")
	pod.UID = "first"
	mustCreate(t, store, pod)
}

func changed(t testing.TB, store upstream.Interface) { mustSet(t, store, "a", label("2")) }
func gone(t testing.TB, store upstream.Interface)    { mustDelete(t, store, "a") }

func anew(t testing.TB, store upstream.Interface) {
	gone(t, store)
	pod := labelled("a", "2")
	pod.UID = "second"
	mustCreate(t, store, pod)
}

type action = func(upstream.Interface, *example.Pod) error

func setLabel(value string) action {
	return func(store upstream.Interface, out *example.Pod) error { return set(store, "a", out, label(value)) }
}

func putLabel(value string) action {
	return func(store upstream.Interface, out *example.Pod) error {
		return guaranteed(store, out, true, nil, func(*example.Pod) (*example.Pod, error) { return labelled("a", value), nil })
	}
}

func setAt(version, value string) action {
	return func(store upstream.Interface, out *example.Pod) error {
		return guaranteed(store, out, false, &upstream.Preconditions{ResourceVersion: &version}, func(pod *example.Pod) (*example.Pod, error) {
			label(value)(pod)
			return pod, nil
		})
	}
}

func setFrom(before, value string) action {
	return func(store upstream.Interface, out *example.Pod) error {
		return guaranteed(store, out, false, nil, func(pod *example.Pod) (*example.Pod, error) {
			if pod.Labels["l"] != before {
				return nil, errors.New("refused")
			}
			label(value)(pod)
			return pod, nil
		})
	}
}

func guaranteed(store upstream.Interface, out *example.Pod, create bool, pre *upstream.Preconditions, change func(*example.Pod) (*example.Pod, error)) error {
	return store.GuaranteedUpdate(context.Background(), keyOf("a"), out, create, pre,
		upstream.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			pod, err := change(obj.(*example.Pod))
			if err != nil {
				return nil, err
			}
			return pod, nil
		}), nil)
}

func removeAny(store upstream.Interface, out *example.Pod) error { return remove(store, "a", out, nil) }

func removeAt(version string) action {
	return func(store upstream.Interface, out *example.Pod) error {
		return remove(store, "a", out, &upstream.Preconditions{ResourceVersion: &version})
	}
}

func removeUID(uid string) action {
	return func(store upstream.Interface, out *example.Pod) error {
		return remove(store, "a", out, &upstream.Preconditions{UID: ptr.To(types.UID(uid))})
	}
}

func createAny(store upstream.Interface, out *example.Pod) error {
	return store.Create(context.Background(), keyOf("a"), labelled("a", "4"), out, 0)
}
