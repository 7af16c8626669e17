package routes

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"

	"kontiki/api/registry"
)

// newFirst returns firstOwners of a kind, and upstream's field manager.
func newFirst(t testing.TB, kind schema.GroupVersionKind) (*firstOwners, *managedfields.FieldManager) {
	t.Helper()
	theirs, ours := managers(t, kind)
	scheme := registry.Scheme()
	f := (&target{
		Config: Config{Scheme: scheme},
		shape:  shapeOf(kind, scheme, registry.TypeConverter()),
		scope: &handlers.RequestScope{
			Kind: kind, FieldManager: ours, UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme),
		},
	}).newFirstOwners()
	if f.outline == nil {
		t.Fatalf("%s has no outline", kind)
	}
	return f, theirs
}

// revalued changes values all over an object, here and there also which ones are set.
func revalued(v reflect.Value, random *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			revalued(v.Elem(), random)
		}
	case reflect.Struct:
		if name := v.Type().Name(); strings.HasSuffix(name, "Time") {
			if random.IntN(6) == 0 {
				v.SetZero()
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "TypeMeta" && v.Type().Field(i).IsExported() {
				revalued(v.Field(i), random)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			revalued(v.Index(i), random)
		}
	case reflect.String:
		if n := random.IntN(60); n == 0 {
			v.SetString("")
		} else if n < 20 {
			v.SetString("other")
		}
	case reflect.Int32, reflect.Int64:
		if n := random.IntN(60); n == 0 {
			v.SetInt(0)
		} else if n < 20 && v.Type().Name() != "Type" {
			v.SetInt(int64(1 + n))
		}
	}
}

// TestFirstOwners: what is remembered of an outline is what upstream finds for the object at hand.
func TestFirstOwners(t *testing.T) {
	seed := rand.Int64()
	for _, kind := range plainKinds {
		first, theirs := newFirst(t, kind)
		hits := 0
		for i := range int64(25) {
			fill, random := randomly(seed+i).NilChance(0.7).NumElements(0, 2), rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			base, err := registry.Scheme().New(kind)
			if err != nil {
				t.Fatal(err)
			}
			empty := base.DeepCopyObject()
			fill.Fill(base)
			base.GetObjectKind().SetGroupVersionKind(kind)
			for range 12 {
				obj := base.DeepCopyObject()
				revalued(reflect.ValueOf(obj).Elem(), random)
				if !plain(obj) {
					continue
				}
				sketch, ok := first.sketch(obj)
				if _, known := first.fields(sketch); ok && known {
					hits++
				}
				want := owned(theirs.UpdateNoErrors(empty.DeepCopyObject(), obj.DeepCopyObject(), "creator"))
				if err := first.set(obj, "creator"); err != nil {
					t.Fatal(err)
				}
				if got := owned(obj); got != want {
					t.Fatalf("%s, seed %d: the creator owns\n%s, with upstream\n%s", kind, seed+i, got, want)
				}
			}
		}
		if hits == 0 {
			t.Errorf("%s: no outline came twice, nothing was tried", kind)
		}
	}
}

// TestFirstOwnersAreBounded: no client fills a node's memory with outlines.
func TestFirstOwnersAreBounded(t *testing.T) {
	first, _ := newFirst(t, plainKinds[0])
	for i := range 3 * maxOutlines {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{string(rune('a'+i%26)) + string(rune('0'+i/26)): ""}
		if err := first.set(pod, "creator"); err != nil {
			t.Fatal(err)
		}
		if len(first.known) > maxOutlines {
			t.Fatalf("%d outlines are remembered", len(first.known))
		}
	}
	long := &corev1.Pod{}
	long.Labels = map[string]string{string(make([]byte, maxOutline)): ""}
	if _, ok := first.sketch(long); ok {
		t.Error("an outline of any length is remembered")
	}
}

func BenchmarkFirstOwners(b *testing.B) {
	first, _ := newFirst(b, plainKinds[0])
	pod := &corev1.Pod{}
	randomly(1).NilChance(0.7).Fill(pod)
	for b.Loop() {
		if err := first.set(pod, "creator"); err != nil {
			b.Fatal(err)
		}
		accessor, _ := meta.Accessor(pod)
		accessor.SetManagedFields(nil)
	}
}
