package routes

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"kontiki/api/fields"
	"kontiki/api/registry"
)

// owners is the managedFields of one request that writes.
//
// Upstream's handlers check after admission that it left sound managedFields. It does: what is
// there was made by the field manager just before, and no plugin changes it. To parse it once
// more is a twentieth of the CPU of a write. So it is put aside until that check is done.
type owners struct {
	creates *fields.Owners // of a request that creates, or nil
	updates *updates       // of one that updates, or nil
	agent   string         // who owns what the request brings, unless its options say who
	aside   []metav1.ManagedFieldsEntry
	tries   int // of the registry, see updating
}

// judged is an admission chain that puts managedFields aside for the handler that asks it.
type judged struct {
	registry.Admission
	owners *owners
}

// Handles implements admission.Interface: whatever the plugins care for, managedFields are to be made.
func (judged) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface.
func (j judged) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	accessor, err := meta.Accessor(a.GetObject())
	if err != nil {
		return j.Admission.Admit(ctx, a, o)
	}
	switch own := j.owners; {
	case own.creates != nil:
		err = own.creates.Create(a.GetObject(), own.manager(a.GetOperationOptions()))
	case own.updates != nil && own.updates.old != nil:
		a = of{a, own.updates.old}
		err = own.updates.end(a.GetObject(), own.manager(a.GetOperationOptions()))
	}
	if err != nil {
		return err
	}
	before := accessor.GetManagedFields()
	if err := j.Admission.Admit(ctx, a, o); err != nil {
		return err
	}
	if sameEntries(before, accessor.GetManagedFields()) && j.owners.tries < 2 {
		j.owners.aside = before
		accessor.SetManagedFields(nil)
	}
	return nil
}

// sameEntries says whether two slices are one.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// manager is who owns what is written.
func (o *owners) manager(options runtime.Object) string {
	name := ""
	switch options := options.(type) {
	case *metav1.CreateOptions:
		name = options.FieldManager
	case *metav1.UpdateOptions:
		name = options.FieldManager
	}
	return cmp.Or(name, o.agent)
}

// of is what admission is asked about, with the whole of what is there.
type of struct {
	admission.Attributes
	old runtime.Object
}

// GetOldObject implements admission.Attributes.
func (o of) GetOldObject() runtime.Object { return o.old }

// restore gives an object the managedFields that were put aside.
func (o *owners) restore(obj runtime.Object) {
	if o.aside == nil {
		return
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(o.aside)
	}
	o.aside = nil
}

// agentOf is how upstream's handlers name a client that does not name itself: the printable part
// of its User-Agent before a slash.
func agentOf(r *http.Request) string {
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	var name strings.Builder
	for _, char := range agent {
		if !unicode.IsPrint(char) {
			continue
		}
		if name.Len()+utf8.RuneLen(char) > validation.FieldManagerMaxLength {
			break
		}
		name.WriteRune(char)
	}
	return name.String()
}

// restoring makes objects that get the managedFields back that were put aside.
type restoring struct {
	rest.UpdatedObjectInfo
	owners *owners
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (o restoring) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	shown := old
	if o.owners.updates != nil && o.owners.tries < 2 {
		shown = o.owners.updates.begin(old)
	}
	obj, err := o.UpdatedObjectInfo.UpdatedObject(ctx, shown)
	if err != nil && shown != old && o.owners.updates.undo() { // it may tell what it was shown
		obj, err = o.UpdatedObjectInfo.UpdatedObject(ctx, old)
	}
	if err == nil {
		o.owners.restore(obj)
	}
	return obj, err
}
