package fields

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
	"sigs.k8s.io/randfill"

	"kontiki/api/registry"
)

// newOwners returns the Owners of a kind, and upstream's field manager.
func newOwners(t testing.TB, kind schema.GroupVersionKind) (*Owners, *managedfields.FieldManager) {
	t.Helper()
	theirs, ours := managers(t, kind)
	scheme := registry.Scheme()
	owners := NewOwners(kind, "", scheme, NewTypes(registry.TypeConverter(), kind.Group, kind, scheme), ours)
	if !owners.Remembers() {
		t.Fatalf("%s has no outline", kind)
	}
	return owners, theirs
}

// A revaluer changes values all over an object, here and there also which ones are set. Where, is
// random; to what, is the word's.
type revaluer struct {
	random *rand.Rand
	word   string
	share  int // of 60 values, how many are changed
}

func (r revaluer) change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.change(v.Elem())
		}
	case reflect.Struct:
		if name := v.Type().Name(); strings.HasSuffix(name, "Time") {
			if r.random.IntN(60) < r.share/2 {
				v.SetZero()
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "TypeMeta" && v.Type().Field(i).IsExported() {
				r.change(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.change(v.Index(i))
		}
	case reflect.String:
		if n := r.random.IntN(60); n == 0 {
			v.SetString("")
		} else if n < r.share {
			v.SetString(r.word)
		}
	case reflect.Int32, reflect.Int64:
		if n := r.random.IntN(60); n == 0 {
			v.SetInt(0)
		} else if n < r.share && v.Type().Name() != "Type" {
			v.SetInt(int64(n + len(r.word)))
		}
	}
}

// newBase makes an empty and a random object, both the same for a seed and a number.
func newBase(t *testing.T, kind schema.GroupVersionKind, seed, i int64) (fill *randfill.Filler, random *rand.Rand, empty, base runtime.Object) {
	t.Helper()
	fill, random = randomly(seed+i).NilChance(0.7).NumElements(0, 2), rand.New(rand.NewPCG(uint64(seed), uint64(i)))
	base, err := registry.Scheme().New(kind)
	if err != nil {
		t.Fatal(err)
	}
	empty = base.DeepCopyObject()
	fill.Fill(base)
	base.GetObjectKind().SetGroupVersionKind(kind)
	return fill, random, empty, base
}

// TestFirstOwners: what is remembered of an outline is what upstream finds for the object at hand.
func TestFirstOwners(t *testing.T) {
	seed := rand.Int64()
	for _, kind := range plainKinds {
		owners, theirs := newOwners(t, kind)
		hits := 0
		for i := range int64(25) {
			_, random, empty, base := newBase(t, kind, seed, i)
			for range 12 {
				obj := base.DeepCopyObject()
				revaluer{random, "other", 20}.change(reflect.ValueOf(obj).Elem())
				if !plain(obj) {
					continue
				}
				sketch, ok := owners.sketch(obj)
				if _, known := owners.first.get(sketch); ok && known {
					hits++
				}
				want := owned(theirs.UpdateNoErrors(empty.DeepCopyObject(), obj.DeepCopyObject(), "creator"))
				if err := owners.Create(obj, "creator"); err != nil {
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
	owners, _ := newOwners(t, plainKinds[0])
	for i := range 3 * maxRemembered {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{string(rune('a'+i%26)) + string(rune('0'+i/26)): ""}
		if err := owners.Create(pod, "creator"); err != nil {
			t.Fatal(err)
		}
		if n := len(owners.first.known); n > maxRemembered {
			t.Fatalf("%d outlines are remembered", n)
		}
	}
	long := &corev1.Pod{}
	long.Labels = map[string]string{string(make([]byte, maxSketch)): ""}
	if _, ok := owners.sketch(long); ok {
		t.Error("an outline of any length is remembered")
	}
}

func BenchmarkFirstOwners(b *testing.B) {
	owners, _ := newOwners(b, plainKinds[0])
	pod := &corev1.Pod{}
	randomly(1).NilChance(0.7).Fill(pod)
	for b.Loop() {
		if err := owners.Create(pod, "creator"); err != nil {
			b.Fatal(err)
		}
		accessor, _ := meta.Accessor(pod)
		accessor.SetManagedFields(nil)
	}
}
