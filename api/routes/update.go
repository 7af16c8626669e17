package routes

import (
	"bytes"
	"io"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
)

// updates is an update on its way through upstream's handler, which has a field manager of its
// own. That does nothing to objects without managedFields, so it is given such ones: what is to
// be updated, and in a PUT what the body is decoded into.
type updates struct {
	*target
	patch   types.PatchType // "" is a PUT
	body    *seen           // of a patch
	fresh   runtime.Object  // of a PUT
	taken   bool            // from fresh
	brought []metav1.ManagedFieldsEntry
	old     runtime.Object // from begin to end, if it is left to Owners
}

// begin returns what to show upstream's handler of an object that is to be updated.
func (u *updates) begin(old runtime.Object) runtime.Object {
	u.old = nil
	accessor, err := meta.Accessor(old)
	if err != nil || accessor.GetUID() == "" || len(accessor.GetManagedFields()) == 0 || !u.take() {
		return old
	}
	bare := reflect.New(reflect.TypeOf(old).Elem())
	bare.Elem().Set(reflect.ValueOf(old).Elem())
	shown := bare.Interface().(runtime.Object)
	accessor, err = meta.Accessor(shown)
	if err != nil {
		return old
	}
	accessor.SetManagedFields(nil)
	u.old = old
	if u.onlyStatus() {
		bare.Elem().FieldByName("Spec").SetZero()
	}
	return shown
}

// take says whether Owners can do it, and has what a PUT brings.
func (u *updates) take() bool {
	switch {
	case !u.owners.Remembers():
		return false
	case u.patch == types.MergePatchType || u.patch == types.StrategicMergePatchType:
		return !u.body.has("managedFields")
	case u.patch != "":
		return false
	}
	accessor, err := meta.Accessor(u.fresh)
	if err != nil {
		return false
	}
	if !u.taken {
		u.brought, u.taken = accessor.GetManagedFields(), true
		accessor.SetManagedFields(nil)
	}
	return true
}

// undo has upstream's handler see all, unless its work was done already.
func (u *updates) undo() bool {
	if u.old == nil {
		return false
	}
	u.old = nil
	if accessor, err := meta.Accessor(u.fresh); err == nil && u.taken {
		accessor.SetManagedFields(u.brought)
		u.taken = false
	}
	return true
}

// onlyStatus says whether an object's spec need not be shown: a strategic merge patch of its status
// takes the whole object apart and puts it together again. What it did to the spec would be undone
// by the registry; it does nothing to it if it does not name it.
func (u *updates) onlyStatus() bool {
	return u.subresource == "status" && u.patch == types.StrategicMergePatchType && !u.body.has(`"spec"`) &&
		reflect.ValueOf(u.old).Elem().FieldByName("Spec").IsValid()
}

// end has obj, which upstream's handler made of what it was shown, be as if it had seen all.
func (u *updates) end(obj runtime.Object, manager string) error {
	if u.onlyStatus() {
		reflect.ValueOf(obj).Elem().FieldByName("Spec").Set(reflect.ValueOf(u.old).Elem().FieldByName("Spec"))
	}
	old := u.old
	u.old = nil
	return u.owners.Update(old, obj, u.brought, manager)
}

// seen is a body that remembers what was read of it.
type seen struct {
	io.ReadCloser
	read []byte
}

// Read implements io.Reader.
func (s *seen) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.read = append(s.read, p[:n]...)
	return n, err
}

// has says whether a word is in the body, or may be: JSON can hide it.
func (s *seen) has(word string) bool {
	return bytes.Contains(s.read, []byte(word)) || bytes.Contains(s.read, []byte(`\u`))
}

// serveUpdate serves PUT.
func (t *target) serveUpdate(updater rest.Updater) func() http.HandlerFunc {
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			own := &owners{updates: &updates{target: t}, agent: agentOf(r)}
			as := updating{Updater: updater, owners: own, sending: t.sending(r)}
			handlers.UpdateResource(as, t.scope, judged{t.Admission, own})(w, r)
		}
	}
}
