package routes

import (
	"net/http"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
)

// serveCreate serves POST of an object.
func (t *target) serveCreate(creater rest.Creater) func() http.HandlerFunc {
	return t.creates(func(scope *handlers.RequestScope, own *owners, as sending) http.HandlerFunc {
		return handlers.CreateResource(creating{creater, t.scope.Kind.GroupKind(), own, as}, scope, judged{t.Admission, own})
	})
}

// serveCreateNamed serves POST of what is about an object that is there.
func (t *target) serveCreateNamed(creater rest.NamedCreater) func() http.HandlerFunc {
	return t.creates(func(scope *handlers.RequestScope, own *owners, as sending) http.HandlerFunc {
		return handlers.CreateNamedResource(creatingNamed{creater, t.scope.Kind.GroupKind(), own, as}, scope, judged{t.Admission, own})
	})
}

// creates has a handler of upstream's leave managedFields to firstOwners.
func (t *target) creates(handler func(*handlers.RequestScope, *owners, sending) http.HandlerFunc) func() http.HandlerFunc {
	scope, first := *t.scope, t.newFirstOwners()
	scope.Creater = nothing{scope.Creater}
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			handler(&scope, &owners{first: first, agent: agentOf(r)}, t.sending(r))(w, r)
		}
	}
}

// nothing makes objects that have no metadata. A field manager that is asked what changed since
// such an object leaves the new one alone.
type nothing struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (nothing) New(schema.GroupVersionKind) (runtime.Object, error) { return &metav1.Status{}, nil }

// maxOutlines and maxOutline bound what is remembered of a kind's objects.
const (
	maxOutlines = 512
	maxOutline  = 8 << 10
)

// firstOwners are the managedFields of new objects. What somebody owns who creates an object
// is what it has, so it is worked out once for all objects of one outline: upstream's way, field
// by field against an empty object, is a fifth of the CPU of a create.
type firstOwners struct {
	*target
	outline outline // nil: of this kind nothing is remembered

	mu    sync.Mutex
	known map[string]metav1.FieldsV1 // guarded by mu; the fields of an outline
}

func (t *target) newFirstOwners() *firstOwners {
	f := &firstOwners{target: t, known: map[string]metav1.FieldsV1{}}
	obj, err := t.Scheme.New(t.scope.Kind)
	if err != nil || t.shape.schema == nil {
		return f
	}
	if obj.GetObjectKind().SetGroupVersionKind(t.scope.Kind); plain(obj) {
		f.outline, _ = outlineOf(reflect.TypeOf(obj).Elem(), t.shape.schema, t.shape.ref)
	}
	return f
}

// set gives obj, which is about to be created by manager, the managedFields that upstream's
// field manager gives it.
func (f *firstOwners) set(obj runtime.Object, manager string) error {
	sketch, ok := f.sketch(obj)
	if !ok {
		return f.ask(obj, manager)
	}
	fields, ok := f.fields(sketch)
	if !ok {
		if err := f.ask(obj, manager); err != nil {
			return err
		}
		f.remember(sketch, obj)
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
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: f.scope.Kind.GroupVersion().String(),
		Time: &metav1.Time{Time: time.Now().UTC()}, FieldsType: "FieldsV1", FieldsV1: &fields, Subresource: f.subresource,
	}})
	return nil
}

// sketch is an object's outline. An object that brings managedFields of its own has none.
func (f *firstOwners) sketch(obj runtime.Object) (string, bool) {
	if f.outline == nil {
		return "", false
	}
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetManagedFields() != nil {
		return "", false
	}
	versioned, err := f.scope.UnsafeConvertor.ConvertToVersion(obj, f.scope.Kind.GroupVersion())
	if err != nil || !plain(versioned) {
		return "", false
	}
	sketch := f.outline.add(make([]byte, 0, 1<<10), reflect.ValueOf(versioned).Elem())
	return string(sketch), len(sketch) <= maxOutline
}

// ask has upstream's field manager do it.
func (f *firstOwners) ask(obj runtime.Object, manager string) error {
	empty, err := f.Scheme.New(f.scope.Kind)
	if err != nil {
		return err
	}
	f.scope.FieldManager.UpdateNoErrors(empty, obj, manager)
	return nil
}

func (f *firstOwners) fields(sketch string) (metav1.FieldsV1, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fields, ok := f.known[sketch]
	return fields, ok
}

// remember takes from obj what the field manager found. One who owns nothing is not in there:
// that is rare, and not told from a failure.
func (f *firstOwners) remember(sketch string, obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	entries := accessor.GetManagedFields()
	if len(entries) != 1 || entries[0].FieldsV1 == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxOutlines { // as rarely as that, to begin anew costs nothing
		clear(f.known)
	}
	f.known[sketch] = *entries[0].FieldsV1.DeepCopy()
}
