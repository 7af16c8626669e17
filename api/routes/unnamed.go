package routes

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/api/fields"
)

// parts are the fields of an object that may be large and that many updates do not touch, and
// their names on the wire.
var parts = []struct{ field, word string }{{"Spec", "spec"}, {"Status", "status"}}

// unnamed are the parts of an object that an update does not name and does nothing to, so that they
// need not be taken apart and put together again.
func (u *updates) unnamed(whole reflect.Value, entries []metav1.ManagedFieldsEntry) (names []string) {
	for _, part := range parts {
		if (u.leaves(part.word) || u.neverApplied(part.word, entries)) && whole.FieldByName(part.field).IsValid() {
			names = append(names, part.field)
		}
	}
	return names
}

// leaves says whether the update is a strategic merge patch of the status that leaves this part as
// it is. What such a patch did to the spec would be undone by the registry; it does nothing to it if
// it does not name it.
func (u *updates) leaves(word string) bool {
	return word == "spec" && u.subresource == "status" && u.patch == types.StrategicMergePatchType && !u.body.has(`"spec"`)
}

// neverApplied says whether the update is a server-side apply that neither has this part nor takes
// back, by not having it, what its manager applied before. If somebody owns fields in another
// version, all of the object is looked at in that one too, and is shown.
func (u *updates) neverApplied(word string, entries []metav1.ManagedFieldsEntry) bool {
	if !u.applies() || u.subresource != "" || !u.body.silent(word) {
		return false
	}
	version := u.scope.Kind.GroupVersion().String()
	return !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		applied := e.Operation == metav1.ManagedFieldsOperationApply && e.Manager == u.manager
		return e.APIVersion != version || applied && (e.FieldsV1 == nil || fields.MayHave(e.FieldsV1.GetRawBytes(), `"f:`+word+`"`))
	})
}
