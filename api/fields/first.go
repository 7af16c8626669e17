package fields

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Create gives obj, which is about to be created by manager, the managedFields that upstream's
// field manager gives it.
func (o *Owners) Create(obj runtime.Object, manager string) error {
	sketch, ok := o.sketch(obj)
	if !ok {
		return o.ask(obj, manager)
	}
	fields, ok := o.first.get(sketch)
	if !ok {
		if err := o.ask(obj, manager); err != nil {
			return err
		}
		o.remember(sketch, obj)
		return nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if manager == "" {
		manager = "unknown" // as upstream names it
	}
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: o.kind.GroupVersion().String(),
		Time: &metav1.Time{Time: time.Now().UTC()}, FieldsType: "FieldsV1", FieldsV1: &fields, Subresource: o.subresource,
	}})
	return nil
}

// sketch is an object's outline. An object that brings managedFields of its own has none.
func (o *Owners) sketch(obj runtime.Object) ([]byte, bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetManagedFields() != nil {
		return nil, false
	}
	of, ok := o.outlined(obj)
	if !ok {
		return nil, false
	}
	sketch := o.outline.add(make([]byte, 0, 1<<10), of)
	return sketch, len(sketch) <= maxSketch
}

// ask has upstream's field manager do it.
func (o *Owners) ask(obj runtime.Object, manager string) error {
	empty, err := o.scheme.New(o.kind)
	if err != nil {
		return err
	}
	o.manager.UpdateNoErrors(empty, obj, manager)
	return nil
}

// remember takes from obj what the field manager found. One who owns nothing is not in there:
// that is rare, and not told from a failure.
func (o *Owners) remember(sketch []byte, obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	entries := accessor.GetManagedFields()
	if len(entries) != 1 || entries[0].FieldsV1 == nil {
		return
	}
	o.first.put(sketch, *entries[0].FieldsV1.DeepCopy())
}
