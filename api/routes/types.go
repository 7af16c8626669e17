package routes

import (
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
func (g groupTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Group != g.group {
		return nil, runtime.NewNotRegisteredErrForKind(g.group, kind)
	}
	return g.TypeConverter.ObjectToTyped(obj, opts...)
}
