package storage_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestSelectors has one history seen through several selectors. What enters a
// selector is added, what leaves it is deleted in its last matching state; both
// carry the version of the change.
func TestSelectors(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		pred upstream.SelectionPredicate
		want string
	}{
		{"everything", upstream.SelectionPredicate{},
			"ADDED a=1@2, MODIFIED a=2@3, ADDED b=2@4, MODIFIED a=1@5, DELETED b=2@6, MODIFIED a=3@7, DELETED a=3@8, ADDED a=2@9"},
		{"enter and leave", byLabel("2"),
			"ADDED a=2@3, ADDED b=2@4, DELETED a=2@5, DELETED b=2@6, ADDED a=2@9"},
		{"start inside, deleted when outside", byLabel("1"),
			"ADDED a=1@2, DELETED a=1@3, ADDED a=1@5, DELETED a=1@7, ADDED z=1@10"},
		{"deleted when inside", byLabel("3"),
			"ADDED a=3@7, DELETED a=3@8"},
		{"a field", byName("b"),
			"ADDED b=2@4, DELETED b=2@6"},
	}
	leader, _ := newReplicas(0)
	leader.advance() // versions begin at 2
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	mustSet(t, store, "a", label("2"))
	mustCreate(t, store, labelled("b", "2"))
	mustSet(t, store, "a", label("1"))
	mustDelete(t, store, "b")
	mustSet(t, store, "a", label("3"))
	mustDelete(t, store, "a")
	mustCreate(t, store, labelled("a", "2"))
	mustCreate(t, store, labelled("z", "1"))
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			expect(t, mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1", Predicate: row.pred}), row.want)
		})
	}
}

func byLabel(value string) upstream.SelectionPredicate {
	return upstream.SelectionPredicate{Label: labels.Set{"l": value}.AsSelector()}
}

func byName(name string) upstream.SelectionPredicate {
	return upstream.SelectionPredicate{Field: fields.OneTermEqualSelector("metadata.name", name)}
}

// TestDeletedCarriesLastState compares a whole object with what the deletion
// answered and with what watches got.
func TestDeletedCarriesLastState(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	pod := labelled("a", "1")
	pod.Spec.NodeName, pod.UID = "somewhere", "u"
	created := mustCreate(t, store, pod)
	deleted := mustDelete(t, store, "a")
	want := created.DeepCopy()
	want.ResourceVersion = "2"
	all := mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1"})
	selected := mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1", Predicate: byLabel("1")})
	seen := map[string]*example.Pod{
		"answer":   deleted,
		"watch":    podOf(t, <-all.ResultChan()),
		"selected": podOf(t, <-selected.ResultChan()),
	}
	for where, got := range seen {
		if diff := difference(want, got); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
	if pod, err := get(store, "a", ""); !upstream.IsNotFound(err) {
		t.Errorf("after the deletion: %v %v", pod, err)
	}
}

// TestWatchOfOneKey sees that key, not those it is a prefix of.
func TestWatchOfOneKey(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	leader.advance()
	opts := complete(upstream.ListOptions{ResourceVersion: "1"})
	opts.Recursive = false
	w, err := store.Watch(t.Context(), keyOf("a"), opts)
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, store, labelled("ab", "1"))
	mustCreate(t, store, labelled("a", "1"))
	expect(t, w, "ADDED a=1@3")
}

// TestAttributesThatCannotBeRead match nothing, as upstream has it.
func TestAttributesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	pred := byLabel("1")
	pred.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if pod := obj.(*example.Pod); pod.Name == "a" {
			return nil, nil, errUnreadable
		}
		return upstream.DefaultNamespaceScopedAttr(obj)
	}
	mustCreate(t, store, labelled("b", "1"))
	if got := names(mustList(t, store, upstream.ListOptions{Predicate: pred}).Items); got != "b=1 " {
		t.Errorf("listed %s", got)
	}
	expect(t, mustWatch(t, store, upstream.ListOptions{Predicate: pred}), "ADDED b=1@2")
}
