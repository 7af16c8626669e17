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

	"kontiki/api/fields"
)

// updates is an update on its way through upstream's handler, which has a field manager of its
// own. That does nothing to objects without managedFields, so it is given such ones: what is to
// be updated, and in a PUT what the body is decoded into. For a server-side apply it has to do its
// work, and is given what that is about.
type updates struct {
	*target
	patch   types.PatchType // "" is a PUT
	body    *seen           // of a patch
	manager string          // of an apply
	fresh   runtime.Object  // of a PUT
	taken   bool            // from fresh
	brought []metav1.ManagedFieldsEntry
	old     runtime.Object // from begin to end, if it was not shown as it is
	hidden  []string       // its fields that were not shown at all
}

// begin returns what to show upstream's handler of an object that is to be updated.
func (u *updates) begin(old runtime.Object) runtime.Object {
	u.old, u.hidden = nil, nil
	accessor, err := meta.Accessor(old)
	if err != nil || accessor.GetUID() == "" || len(accessor.GetManagedFields()) == 0 {
		return old
	}
	u.hidden = u.unnamed(reflect.ValueOf(old).Elem(), accessor.GetManagedFields())
	if !u.take() {
		return old
	}
	shown := fields.Shallow(old)
	for _, field := range u.hidden {
		reflect.ValueOf(shown).Elem().FieldByName(field).SetZero()
	}
	if accessor, err = meta.Accessor(shown); err != nil {
		return old
	}
	if !u.applies() {
		accessor.SetManagedFields(nil)
	}
	u.old = old
	return shown
}

// applies says whether the update is a server-side apply.
func (u *updates) applies() bool { return u.patch == types.ApplyYAMLPatchType }

// take says whether upstream's handler need not see all: of an apply, that some fields are hidden, else
// that Owners can do its work. Then it has what a PUT brings.
func (u *updates) take() bool {
	switch {
	case u.applies():
		return len(u.hidden) > 0
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

// end has obj, which upstream's handler made of what it was shown, be as if it had seen all.
func (u *updates) end(obj runtime.Object, manager string) error {
	kept := u.old
	if u.applies() {
		kept = u.old.DeepCopyObject() // the registry may write to what is new, and compares it with the old
	}
	made, whole := reflect.ValueOf(obj).Elem(), reflect.ValueOf(kept).Elem()
	for _, field := range u.hidden {
		made.FieldByName(field).Set(whole.FieldByName(field))
	}
	old := u.old
	u.old = nil
	if u.applies() {
		return nil
	}
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

// has says whether a word is in the body, or may be.
func (s *seen) has(word string) bool { return fields.MayHave(s.read, word) }

// silent says whether a word is certainly not in the body: without one of these characters neither
// JSON nor YAML can hide it, by an escape, a tag or a wider encoding.
func (s *seen) silent(word string) bool {
	return !s.has(word) && !bytes.ContainsAny(s.read, "\\!\x00")
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
