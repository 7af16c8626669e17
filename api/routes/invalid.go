package routes

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// creating is a rest.Creater, or a rest.NamedCreater, whose validation errors
// are a 422. Upstream answers 500 to a binding without a target.
type creating struct {
	rest.Creater
	kind    schema.GroupKind
	owners  *owners
	sending sending
}

// Create implements rest.Creater.
func (c creating) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	c.owners.restore(obj)
	ctx, end := c.sending.begin(ctx)
	out, err := c.Creater.Create(ctx, obj, validate, options)
	return end(out), invalid(err, c.kind, obj)
}

type creatingNamed struct {
	rest.NamedCreater
	kind    schema.GroupKind
	owners  *owners
	sending sending
}

// Create implements rest.NamedCreater.
func (c creatingNamed) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	c.owners.restore(obj)
	ctx, end := c.sending.begin(ctx)
	out, err := c.NamedCreater.Create(ctx, name, obj, validate, options)
	return end(out), invalid(err, c.kind, obj)
}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements
// rest.SubresourceObjectMetaPreserver as the storage does.
func (c creatingNamed) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool {
	preserver, ok := c.NamedCreater.(rest.SubresourceObjectMetaPreserver)
	return ok && preserver.PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate()
}

// invalid makes a Status of validation errors that are bare; others pass.
func invalid(err error, kind schema.GroupKind, obj runtime.Object) error {
	all := []error{err}
	if aggregate := utilerrors.Aggregate(nil); errors.As(err, &aggregate) {
		all = aggregate.Errors()
	}
	var list field.ErrorList
	for _, e := range all {
		one := (*field.Error)(nil)
		if !errors.As(e, &one) {
			return err
		}
		list = append(list, one)
	}
	name := ""
	if accessor, err := meta.Accessor(obj); err == nil {
		name = accessor.GetName()
	}
	return apierrors.NewInvalid(kind, name, list)
}
