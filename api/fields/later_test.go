package fields

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func managedFields(obj runtime.Object) []metav1.ManagedFieldsEntry {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return accessor.GetManagedFields()
}

func withManagedFields(obj runtime.Object, entries []metav1.ManagedFieldsEntry) runtime.Object {
	obj = obj.DeepCopyObject()
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(entries)
	}
	return obj
}

// aged makes entries look as if they were read from a store, some minutes old.
func aged(obj runtime.Object, random *rand.Rand) {
	entries := managedFields(obj)
	for i := range entries {
		then := metav1.NewTime(time.Now().Add(-time.Duration(1+random.IntN(5)) * time.Minute).Truncate(time.Second))
		entries[i].Time = &then
	}
}

// TestLaterOwners: what is remembered of a difference is what upstream finds for the objects at
// hand, over lives of objects that several clients change.
func TestLaterOwners(t *testing.T) {
	seed := rand.Int64()
	for _, kind := range plainKinds {
		later, theirs := newOwners(t, kind)
		hits := 0
		for i := range int64(30) {
			fill, random, empty, base := newBase(t, kind, seed, i)
			if accessor, err := meta.Accessor(base); err == nil {
				accessor.SetUID("uid")
			}
			if !plain(base) {
				continue
			}
			live := theirs.UpdateNoErrors(empty, base, "creator")
			for step := range 12 {
				aged(live, random)
				var brought []metav1.ManagedFieldsEntry
				if random.IntN(2) == 0 {
					brought = managedFields(live.DeepCopyObject())[:random.IntN(len(managedFields(live))+1)]
				}
				manager := []string{"creator", "updater", "third"}[random.IntN(3)]
				where := random.Uint64()
				var want runtime.Object
				for _, word := range []string{"other", "another"} { // that is one difference
					next := withManagedFields(live, nil)
					if where%5 == 0 {
						next = withManagedFields(changed(next, fill, random), nil)
					}
					revaluer{rand.New(rand.NewPCG(where, 0)), word, []int{2, 20}[where%2]}.change(reflect.ValueOf(next).Elem())
					next.GetObjectKind().SetGroupVersionKind(kind)
					if !plain(next) {
						continue
					}
					if _, sketch := later.change(live, next, brought, manager); sketch != nil {
						if _, known := later.later.get(sketch); known {
							hits++
						}
					}
					want = theirs.UpdateNoErrors(live.DeepCopyObject(), withManagedFields(next, brought), manager)
					got := next.DeepCopyObject()
					if err := later.Update(live.DeepCopyObject(), got, brought, manager); err != nil {
						t.Fatal(err)
					}
					sameTimes(t, managedFields(want), managedFields(got))
					if a, b := owned(want.DeepCopyObject()), owned(got.DeepCopyObject()); a != b {
						t.Fatalf("%s, seed %d, step %d: %s leaves\n%s, with upstream\n%s", kind, seed+i, step, manager, b, a)
					}
				}
				if want == nil || len(managedFields(want)) == 0 {
					break
				}
				live = want
			}
		}
		t.Logf("%s: %d times remembered", kind, hits)
		if hits == 0 {
			t.Errorf("%s: no difference came twice, nothing was tried", kind)
		}
	}
}

// sameTimes compares times that were there before, and that others are new.
func sameTimes(t *testing.T, want, got []metav1.ManagedFieldsEntry) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		old := time.Since(want[i].Time.Time) > 30*time.Second
		if old != want[i].Time.Equal(got[i].Time) && old || !old && time.Since(got[i].Time.Time) > 30*time.Second {
			t.Fatalf("entry %d is of %v, with upstream of %v", i, got[i].Time, want[i].Time)
		}
	}
}

// BenchmarkLaterOwners is a status that changes as the one before.
func BenchmarkLaterOwners(b *testing.B) {
	later, theirs := newOwners(b, plainKinds[0])
	empty, pod := &corev1.Pod{}, &corev1.Pod{}
	randomly(1).NilChance(0.7).Fill(pod)
	pod.SetGroupVersionKind(plainKinds[0])
	pod.UID = "uid"
	live := theirs.UpdateNoErrors(empty, pod, "creator")
	next := withManagedFields(live, nil).(*corev1.Pod)
	next.Status.Message = "other"
	for b.Loop() {
		next.ManagedFields = nil
		if err := later.Update(live, next, nil, "kubelet"); err != nil {
			b.Fatal(err)
		}
	}
}
