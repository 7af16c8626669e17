package fields

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// objectValue is an object as structured-merge-diff sees it. It knows which object that is,
// so that two of them need not be compared where they are the same.
type objectValue struct {
	smdvalue.Value
	object runtime.Object
	fields map[string]int
}

// fieldsOf finds an object's own fields, by the names that they have in JSON.
func fieldsOf(obj runtime.Object) map[string]int {
	kind := reflect.TypeOf(obj).Elem()
	fields := make(map[string]int, kind.NumField())
	for i := range kind.NumField() {
		name, options, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && !strings.Contains(options, "inline") {
			fields[name] = i
		}
	}
	return fields
}

// AsMap implements value.Value.
func (v objectValue) AsMap() smdvalue.Map { return v.AsMapUsing(smdvalue.HeapAllocator) }

// AsMapUsing implements value.Value.
func (v objectValue) AsMapUsing(a smdvalue.Allocator) smdvalue.Map {
	return objectMap{v.Value.AsMapUsing(a), v}
}

// sameIn says whether two objects of one type are the same in a field, and so in all below it.
func (v objectValue) sameIn(name string, other objectValue) bool {
	i, ok := v.fields[name]
	if !ok {
		return false
	}
	a, b := reflect.ValueOf(v.object).Elem().Field(i), reflect.ValueOf(other.object).Elem().Field(i)
	return reflect.DeepEqual(a.Addr().Interface(), b.Addr().Interface())
}

// objectMap is the fields of an objectValue.
type objectMap struct {
	smdvalue.Map
	of objectValue
}

// Zip implements value.Map.
func (m objectMap) Zip(other smdvalue.Map, order smdvalue.MapTraverseOrder, visit func(string, smdvalue.Value, smdvalue.Value) bool) bool {
	return m.ZipUsing(smdvalue.HeapAllocator, other, order, visit)
}

// ZipUsing implements value.Map. Two of these are only zipped to find out where they differ:
// what is merged with an object is what somebody applied, and that has no Go type.
func (m objectMap) ZipUsing(a smdvalue.Allocator, other smdvalue.Map, order smdvalue.MapTraverseOrder, visit func(string, smdvalue.Value, smdvalue.Value) bool) bool {
	o, ok := other.(objectMap)
	if !ok {
		return m.Map.ZipUsing(a, other, order, visit)
	}
	if reflect.TypeOf(m.of.object) != reflect.TypeOf(o.of.object) {
		return m.Map.ZipUsing(a, o.Map, order, visit)
	}
	return m.Map.ZipUsing(a, o.Map, order, func(name string, left, right smdvalue.Value) bool {
		if left != nil && right != nil && m.of.sameIn(name, o.of) {
			return true
		}
		return visit(name, left, right)
	})
}
