package fields

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Owners makes the managedFields of one kind's objects, in one subresource of it or in none. It
// remembers what upstream's field manager made of objects that are alike, and asks it otherwise.
type Owners struct {
	kind        schema.GroupVersionKind
	subresource string
	scheme      *runtime.Scheme
	manager     *managedfields.FieldManager
	convertor   runtime.ObjectConvertor
	outline     outline // nil if the kind has none

	first remembered[metav1.FieldsV1] // by outlines
	later remembered[[]heir]          // by differences
}

// NewOwners makes the Owners of a kind with that field manager.
func NewOwners(kind schema.GroupVersionKind, subresource string, scheme *runtime.Scheme, types Types, manager *managedfields.FieldManager) *Owners {
	o := &Owners{kind: kind, subresource: subresource, scheme: scheme, manager: manager, convertor: runtime.UnsafeObjectConvertor(scheme)}
	if obj, err := scheme.New(kind); err == nil && types.shape.schema != nil && plain(obj) {
		if outline, err := outlineOf(reflect.TypeOf(obj).Elem(), types.shape.schema, types.shape.ref); err == nil {
			o.outline = outline
		}
	}
	return o
}

// Remembers says whether objects of the kind can be told to be alike. If not, there is nothing
// that upstream's field manager does not do as well.
func (o *Owners) Remembers() bool { return o.outline != nil }

// outlined is what an object's outline is made from: it, as clients see it.
func (o *Owners) outlined(obj runtime.Object) (reflect.Value, bool) {
	if o.outline == nil {
		return reflect.Value{}, false
	}
	versioned, err := o.convertor.ConvertToVersion(obj, o.kind.GroupVersion())
	if err != nil || !plain(versioned) {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(versioned).Elem(), true
}
