package routes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// groupTypes knows the types of one group only, as each of kube-apiserver's
// groups does. It shows in objects that two groups serve: a write through one
// group drops what managedFields says of the other.
type groupTypes struct {
	managedfields.TypeConverter
	group string
	shape shape // of the kind that is served
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
func (g groupTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (value *typed.TypedValue, err error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind.Group != g.group {
		return nil, runtime.NewNotRegisteredErrForKind(g.group, kind)
	}
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
		if !returned && panickedIn("/structured-merge-diff/") {
			value, err = nil, fmt.Errorf("object has no type: %v", recover())
		}
	}()
	value, err = g.TypeConverter.ObjectToTyped(obj, opts...)
	returned = true
	return value, err
}

// TypedToObject implements managedfields.TypeConverter. Who looks whether a value is of a
// version that he wants asks for its object: that need not be made of the value again.
func (g groupTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if of, ok := value.AsValue().(objectValue); ok {
		return of.object, nil
	}
	return g.TypeConverter.TypedToObject(value)
}
