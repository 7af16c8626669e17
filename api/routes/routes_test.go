package routes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/coordination"

	"kontiki/api/registry"
	"kontiki/api/routes"
)

// leases is storage that accepts every lease and keeps none.
type leases struct{}

func (leases) New() runtime.Object     { return &coordination.Lease{} }
func (leases) Destroy()                {}
func (leases) NamespaceScoped() bool   { return true }
func (leases) GetSingularName() string { return "lease" }
func (leases) Create(_ context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, validate(context.Background(), obj)
}

// countingAdmission counts how often it is asked.
type countingAdmission struct{ asked int }

func (c *countingAdmission) Handles(admission.Operation) bool { return true }

func (c *countingAdmission) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	c.asked++
	return nil
}

func (c *countingAdmission) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	c.asked++
	return nil
}

func newHandler(t *testing.T, admit registry.Admission) http.Handler {
	t.Helper()
	router := mux.NewRouter()
	groups := []registry.Group{{
		Version: coordinationv1.SchemeGroupVersion,
		Storage: map[string]rest.Storage{"leases": leases{}},
	}}
	if err := routes.Mount(router, groups, routes.Config{
		Scheme: registry.Scheme(), Serializer: registry.NewSerializer(), ParameterCodec: registry.ParameterCodec(),
		TypeConverter: registry.TypeConverter(), Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Admission: admit, MaxBodyBytes: 1 << 20,
	}); err != nil {
		t.Fatal(err)
	}
	info := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return filters.WithRequestInfo(router, info)
}

func do(handler http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// Upstream's write handlers wrap the admission chain that they were made with
// and keep the result. One handler for all requests made each create slower
// than the one before: 6,000 creates took minutes.
func TestEveryRequestCostsTheSameAdmission(t *testing.T) {
	admit := &countingAdmission{}
	handler := newHandler(t, admit)
	const path, lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"metadata":{"name":"a"}}`
	var first int
	for i := range 20 {
		before := admit.asked
		if w := do(handler, http.MethodPost, path, lease); w.Code != http.StatusCreated {
			t.Fatalf("create: %d %s", w.Code, w.Body)
		}
		switch asked := admit.asked - before; {
		case i == 0:
			first = asked
		case asked != first:
			t.Fatalf("request %d asked admission %d times, the first one %d times", i, asked, first)
		}
	}
	if first == 0 {
		t.Fatal("admission was never asked")
	}
}

func TestWhatIsNotServed(t *testing.T) {
	handler := newHandler(t, &countingAdmission{})
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{http.MethodPost, "/apis/coordination.k8s.io/v1/leases", http.StatusNotFound, "could not find the requested resource"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases", http.StatusMethodNotAllowed, "does not allow this method"},
		{http.MethodHead, "/apis/coordination.k8s.io/v1/namespaces/a/leases", http.StatusMethodNotAllowed, "does not allow this method"},
		{http.MethodGet, "/apis/coordination.k8s.io/v1/nosuch", http.StatusNotFound, "could not find the requested resource"},
		{http.MethodGet, "/apis/coordination.k8s.io/v1beta1/leases", http.StatusNotFound, "could not find the requested resource"},
		{http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/a/leases/", http.StatusMethodNotAllowed, "does not allow this method"},
		{http.MethodGet, "/apis/no.such.group/v1/leases", http.StatusNotFound, "404 page not found"},
	} {
		w := do(handler, c.method, c.path, "")
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: %d %q, want %d and %q", c.method, c.path, w.Code, w.Body, c.code, c.body)
		}
	}
}
