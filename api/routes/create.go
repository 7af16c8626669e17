package routes

import (
	"net/http"

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

// creates has a handler of upstream's leave managedFields to Owners.
func (t *target) creates(handler func(*handlers.RequestScope, *owners, sending) http.HandlerFunc) func() http.HandlerFunc {
	scope := *t.scope
	scope.Creater = nothing{scope.Creater}
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			handler(&scope, &owners{creates: t.owners, agent: agentOf(r)}, t.sending(r))(w, r)
		}
	}
}

// nothing makes objects that have no metadata. A field manager that is asked what changed since
// such an object leaves the new one alone.
type nothing struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (nothing) New(schema.GroupVersionKind) (runtime.Object, error) { return &metav1.Status{}, nil }
