package routes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// groupTypes knows the types of one group only, as each of kube-apiserver's
// groups does. It shows in objects that two groups serve: a write through one
// group drops what managedFields says of the other.
type groupTypes struct {
	managedfields.TypeConverter
	group string
}

// ObjectToTyped implements managedfields.TypeConverter.
//
// Protobuf can say what JSON cannot, a port that is neither number nor string
// for one, and that makes a panic. As an error it goes unheeded here, and
// validation finds the mistake.
func (g groupTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (value *typed.TypedValue, err error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Group != g.group {
		return nil, runtime.NewNotRegisteredErrForKind(g.group, kind)
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
