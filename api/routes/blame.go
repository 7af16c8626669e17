package routes

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"kontiki/api/fields"
)

// Upstream answers 500 to some mistakes of clients, because an error without a
// kind reaches its handlers. Here they get the 400 that they are.

// updating is a rest.Updater whose errors about the body are bad requests.
type updating struct {
	rest.Updater
	patch   types.PatchType // that the new object is made with; "" is none
	owners  *owners
	sending sending
}

// New implements rest.Updater. The body of a PUT is decoded into it.
func (u updating) New() runtime.Object {
	u.owners.updates.fresh = u.Updater.New()
	return u.owners.updates.fresh
}

// Update implements rest.Updater.
func (u updating) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	u.owners.tries++ // again when the object is too large: without managedFields then
	info = restoring{info, u.owners}
	if u.patch != "" {
		info = patchedObject{info, u.patch}
	}
	ctx, end := u.sending.begin(ctx)
	obj, created, err := u.Updater.Update(ctx, name, info, create, update, force, options)
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		err = apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", number.Num, number.Err))
	}
	return end(obj), created, err
}

// patching is updating for PATCH.
type patching struct {
	rest.Patcher
	updating
}

// Update implements rest.Updater.
func (p patching) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return p.updating.Update(ctx, name, info, create, update, force, options)
}

// New implements rest.Updater.
func (p patching) New() runtime.Object { return p.Patcher.New() }

// patchType is what kind of patch a request brings, "" if none is known.
func patchType(r *http.Request) types.PatchType {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return types.PatchType(mediaType)
}

// patchedObject is what a patch makes of an object.
type patchedObject struct {
	rest.UpdatedObjectInfo
	patch types.PatchType
}

// UpdatedObject implements rest.UpdatedObjectInfo. What a strategic merge patch
// cannot do is an error without a kind; admission, which has its say here as
// well, returns errors with one.
func (p patchedObject) UpdatedObject(ctx context.Context, old runtime.Object) (obj runtime.Object, err error) {
	returned := false
	defer func() {
		if returned || !fields.PanickedIn("/json-patch") {
			return
		}
		// Of {"op":"replace","path":""}, which lacks a value, for one.
		obj, err = nil, apierrors.NewBadRequest(fmt.Sprintf("the patch cannot be applied: %v", recover()))
	}()
	obj, err = p.UpdatedObjectInfo.UpdatedObject(ctx, old)
	returned = true
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) && p.explains(err) {
		err = apierrors.NewBadRequest(err.Error())
	}
	return obj, err
}

// explains says whether the patch is what an error without a kind is about. Of
// an apply it is when the result, which is of the right schema, is none of the
// type all the same: a number for a time. Upstream gives that error no kind, only
// these words.
func (p patchedObject) explains(err error) bool {
	return p.patch == types.StrategicMergePatchType ||
		p.patch == types.ApplyYAMLPatchType && strings.HasPrefix(err.Error(), "failed to convert new object (")
}

// badNamespace is why a request's namespace cannot be part of a key, nil if it
// can. Names are upstream's registries' to check.
func badNamespace(r *http.Request) error {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		return nil
	}
	if wrong := content.IsPathSegmentName(info.Namespace); len(wrong) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Namespace parameter invalid: %q: %s", info.Namespace, wrong[0]))
	}
	return nil
}
