package fields

import (
	"reflect"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills an object with one of everything, and makes the broken-th number or
// string, counted from 0, neither.
type filler struct {
	broken, seen int
}

func (f *filler) fill(v reflect.Value, depth int) {
	if port, ok := v.Addr().Interface().(*intstr.IntOrString); ok {
		if f.seen == f.broken {
			port.Type = 7
		}
		f.seen++
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 20 { // a schema of a custom resource holds schemas; nothing here does
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

// TestPlain breaks every number or string of every kind in turn: each must be noticed, also
// those that a new release adds.
func TestPlain(t *testing.T) {
	fields := 0
	for _, kind := range []runtime.Object{
		&corev1.Pod{}, &corev1.Service{}, &corev1.Namespace{}, &corev1.Node{}, &corev1.Event{},
		&eventsv1.Event{}, &coordinationv1.Lease{},
	} {
		for broken := -1; ; broken++ {
			obj := reflect.New(reflect.TypeOf(kind).Elem())
			f := filler{broken: broken}
			f.fill(obj.Elem(), 0)
			if broken == f.seen {
				fields += f.seen
				break
			}
			if got, want := plain(obj.Interface().(runtime.Object)), broken < 0; got != want {
				t.Errorf("%T with number or string %d of %d broken: plain is %t", kind, broken, f.seen, got)
			}
		}
	}
	if fields < 30 {
		t.Errorf("only %d fields are numbers or strings", fields)
	}
}
