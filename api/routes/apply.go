package routes

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// servePatch serves PATCH. Upstream answers 500 to a server-side apply whose
// body does not fit the schema, a string where a number belongs for instance,
// because the field manager loses the kind of the error on the way. It is the
// client's mistake, so here it is a 400.
func (t *target) servePatch(patcher rest.Patcher) func() http.HandlerFunc {
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			kind := patchType(r)
			body := &seen{ReadCloser: r.Body}
			own := &owners{updates: &updates{target: t, patch: kind, body: body}, agent: agentOf(r)}
			r.Body = body
			patcher := patching{patcher, updating{patcher, kind, own, t.sending(r)}}
			if kind == types.ApplyYAMLPatchType {
				own.updates.manager = r.URL.Query().Get("fieldManager")
				t.serveApply(patcher, w, r)
				return
			}
			handlers.PatchResource(patcher, t.scope, judged{t.Admission, own}, patchTypes)(w, r)
		}
	}
}

// serveApply gives the request a field manager of its own, so that what it says
// of the body is known to belong to it.
func (t *target) serveApply(patcher patching, w http.ResponseWriter, r *http.Request) {
	body := &bodyTypes{TypeConverter: t.types}
	scope := *t.scope
	var err error
	if scope.FieldManager, err = t.newFieldManager(scope.Kind, scope.HubGroupVersion, body); err != nil {
		responsewriters.InternalError(w, r, err)
		return
	}
	answer := &applyWriter{ResponseWriter: w, refuse: func() bool {
		if body.failure == nil {
			return false
		}
		err := apierrors.NewBadRequest(fmt.Sprintf("failed to create typed patch object: %v", body.failure))
		responsewriters.ErrorNegotiated(err, t.Serializer, scope.Kind.GroupVersion(), w, r)
		return true
	}}
	handlers.PatchResource(patcher, &scope, judged{t.Admission, patcher.owners}, patchTypes)(answer, r)
}

// bodyTypes remembers why an apply body has no type. Bodies are the only
// unstructured objects that it sees: all others come from the store.
type bodyTypes struct {
	managedfields.TypeConverter
	failure error
}

// ObjectToTyped implements managedfields.TypeConverter.
func (b *bodyTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := b.TypeConverter.ObjectToTyped(obj, opts...)
	if _, isBody := obj.(*unstructured.Unstructured); isBody {
		b.failure = err
	}
	return value, err
}

// applyWriter replaces a 500 by what refuse writes, if it does.
type applyWriter struct {
	http.ResponseWriter
	refuse  func() bool
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *applyWriter) WriteHeader(code int) {
	if code == http.StatusInternalServerError && w.refuse() {
		w.refused = true
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *applyWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
