package fields

import (
	"bytes"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// Types knows the types of one group only, as each of kube-apiserver's
// groups does. It shows in objects that two groups serve: a write through one
// group drops what managedFields says of the other.
type Types struct {
	managedfields.TypeConverter
	group string
	shape shape // of the kind that is served
}

// NewTypes makes the Types of what group serves as kind.
func NewTypes(types managedfields.TypeConverter, group string, kind schema.GroupVersionKind, scheme *runtime.Scheme) Types {
	return Types{types, group, shapeOf(kind, scheme, types)}
}

// shape is what the schema says of a kind.
type shape struct {
	kind   schema.GroupVersionKind
	schema *smdschema.Schema
	ref    smdschema.TypeRef
	fields map[string]int // see fieldsOf
}

// shapeOf asks a converter for the schema of a kind. What some subresources take has none;
// it has no managedFields either.
func shapeOf(kind schema.GroupVersionKind, scheme *runtime.Scheme, types managedfields.TypeConverter) shape {
	obj, err := scheme.New(kind)
	if err != nil {
		return shape{}
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	empty, err := types.ObjectToTyped(obj)
	if err != nil {
		return shape{}
	}
	return shape{kind, empty.Schema(), empty.TypeRef(), fieldsOf(obj)}
}

// ObjectToTyped implements managedfields.TypeConverter.
//
// Protobuf can say what JSON cannot, a port that is neither number nor string
// for one, and that makes a panic. As an error it goes unheeded here, and
// validation finds the mistake.
//
// What was decoded into a Go type fits the schema, which was made from that type.
// To compare them once more, field by field, is a third of what managedFields cost.
//
// The value has no managedFields: these say who owns the rest, and who asks for a value has read them
// before. To take them apart, merge and compare them is a fifth of a server-side apply. Nobody owns them
// but who says so himself, and then they are there: it decides what becomes of his claim.
func (g Types) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (value *typed.TypedValue, err error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind.Group != g.group {
		return nil, runtime.NewNotRegisteredErrForKind(g.group, kind)
	}
	obj = unowned(obj)
	if kind == g.shape.kind && plain(obj) {
		value, err := smdvalue.NewValueReflect(obj)
		if err != nil {
			return nil, err
		}
		//lint:ignore SA1019 it is deprecated because validation got cheaper; it is not cheap
		return typed.AsTypedUnvalidated(objectValue{value, obj, g.shape.fields}, g.shape.schema, g.shape.ref), nil
	}
	returned := false
	defer func() {
		if !returned && PanickedIn("/structured-merge-diff/") {
			value, err = nil, fmt.Errorf("object has no type: %v", recover())
		}
	}()
	value, err = g.TypeConverter.ObjectToTyped(obj, opts...)
	returned = true
	return value, err
}

// unowned is an object of a Go type without its managedFields.
func unowned(obj runtime.Object) runtime.Object {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return obj
	}
	entries := accessor.GetObjectMeta().GetManagedFields()
	if len(entries) == 0 || slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return MayHave(e.FieldsV1.GetRawBytes(), "managedFields")
	}) {
		return obj
	}
	bare := Shallow(obj)
	bare.(metav1.ObjectMetaAccessor).GetObjectMeta().SetManagedFields(nil)
	return bare
}

// Shallow is a copy of an object of a Go type. Its fields may be set; what is below them is shared.
func Shallow(obj runtime.Object) runtime.Object {
	whole := reflect.ValueOf(obj).Elem()
	shallow := reflect.New(whole.Type())
	shallow.Elem().Set(whole)
	return shallow.Interface().(runtime.Object)
}

// MayHave says whether a word is in JSON, or may be: JSON can hide it.
func MayHave(text []byte, word string) bool {
	return bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(`\u`))
}

// TypedToObject implements managedfields.TypeConverter. Who looks whether a value is of a
// version that he wants asks for its object: that need not be made of the value again.
func (g Types) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if of, ok := value.AsValue().(objectValue); ok {
		return of.object, nil
	}
	return g.TypeConverter.TypedToObject(value)
}

// PanickedIn says, in a deferred function, whether there is a panic that began
// in a package, given by a part of its path. Others are not to be recovered. It
// walks the stack: ask only where the call did not return.
func PanickedIn(part string) bool {
	callers := make([]uintptr, 16)
	frames := goruntime.CallersFrames(callers[:goruntime.Callers(2, callers)])
	for panicked := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(frame.Function, "runtime."):
			return strings.Contains(frame.Function, part)
		}
		if !more {
			return false
		}
	}
}
