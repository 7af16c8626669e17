package routes

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/gorilla/mux"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"kontiki/api/registry"
)

// Config is what all routes share.
type Config struct {
	Scheme         *runtime.Scheme
	Serializer     runtime.NegotiatedSerializer
	ParameterCodec runtime.ParameterCodec
	TypeConverter  managedfields.TypeConverter
	Authorizer     authorizer.Authorizer
	Admission      registry.Admission
	// MinWatchTimeout is the shortest time after which a watch without a
	// timeout of its own is ended; the longest is twice that.
	MinWatchTimeout time.Duration
	// MaxBodyBytes bounds a request's body; a larger one gets 413.
	MaxBodyBytes int64
}

// Mount adds the routes of every group to the router.
func Mount(router *mux.Router, groups []registry.Group, cfg Config) error {
	equivalents := runtime.NewEquivalentResourceRegistry()
	for _, group := range groups {
		sub := router.PathPrefix(Prefix(group.Version) + "/").Subrouter()
		resources := map[string]*mux.Router{}
		for _, name := range sortedNames(group.Storage) {
			target, err := newTarget(group, name, cfg, equivalents)
			if err != nil {
				return fmt.Errorf("routes of %s %s: %w", group.Version, name, err)
			}
			if resources[target.resource] == nil {
				resources[target.resource] = sub.MatcherFunc(about(target.resource)).Subrouter()
			}
			target.mount(resources[target.resource])
		}
	}
	for _, group := range groups { // what else there might be in a known group
		prefix := path.Dir(Prefix(group.Version)) + "/"
		router.PathPrefix(prefix).Handler(cfg.failure(http.StatusNotFound, ""))
	}
	return nil
}

// about matches requests about a resource, "" those about none. To compare a word that is
// known is cheaper than to try the patterns of all paths one after the other, which is what a
// router does.
func about(resource string) mux.MatcherFunc {
	return func(r *http.Request, _ *mux.RouteMatch) bool {
		info, ok := request.RequestInfoFrom(r.Context())
		return ok && info.Resource == resource
	}
}

// Elsewhere returns a router for what is not about resources.
func Elsewhere(router *mux.Router) *mux.Router { return router.MatcherFunc(about("")).Subrouter() }

// Prefix is the path under which a group version is served.
func Prefix(version schema.GroupVersion) string {
	if version.Group == "" {
		return path.Join("/api", version.Version)
	}
	return path.Join("/apis", version.Group, version.Version)
}

// sortedNames returns the keys of storage so that a resource comes before its
// subresources.
func sortedNames(storage map[string]rest.Storage) []string {
	keys := make([]string, 0, len(storage))
	for key := range storage {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// route is one method on one path.
type route struct {
	method string
	path   string // below the group version's prefix
	// handler makes upstream's handler, anew for every request. That must be:
	// the handlers of writes wrap the admission chain that they were made with
	// and keep the result, so one that is used again wraps it deeper each time,
	// and without a lock. Upstream's own router makes them per request as well.
	handler func() http.HandlerFunc
	// produces and consumes are media types; none means any.
	produces, consumes []string
}

// mount registers a mux route per path, which picks the handler by method: mux
// tries routes one after the other, so the fewer the better.
func (t *target) mount(router *mux.Router) {
	byPath := map[string]methods{}
	var order []string
	for _, r := range t.routes() {
		if byPath[r.path] == nil {
			byPath[r.path] = methods{"": t.failure(http.StatusMethodNotAllowed, "")}
			order = append(order, r.path)
		}
		byPath[r.path][r.method] = t.serve(r)
	}
	for _, p := range order {
		router.Path("/" + p + "{slash:/*}").Handler(byPath[p])
	}
}

// serve answers one route: if the media types fit, with the target's warnings.
func (t *target) serve(r route) http.HandlerFunc {
	unsupported := t.failure(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
	notAcceptable := t.failure(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+strings.Join(r.produces, ", "))
	return func(w http.ResponseWriter, req *http.Request) {
		switch {
		case !supported(r.consumes, req.Header.Get("Content-Type")):
			unsupported(w, req)
			return
		case !acceptable(r.produces, req.Header.Get("Accept")):
			notAcceptable(w, req)
			return
		}
		if err := badNamespace(req); err != nil {
			responsewriters.ErrorNegotiated(err, t.Serializer, t.scope.Kind.GroupVersion(), w, req)
			return
		}
		for _, text := range t.warnings {
			warning.AddWarning(req.Context(), "", text)
		}
		r.handler()(w, req)
	}
}

// methods serves one path: a handler per HTTP method, and under "" the one for
// all other methods.
type methods map[string]http.HandlerFunc

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, ok := m[r.Method]
	if !ok {
		handler = m[""]
	}
	handler(w, r)
}

// Get serves a path of the server's own: GET only.
func Get(handler http.HandlerFunc, cfg Config) http.Handler {
	return Methods(map[string]http.HandlerFunc{http.MethodGet: handler}, cfg)
}

// Methods is a handler by the request's method; others get upstream's 405.
func Methods(handlers map[string]http.HandlerFunc, cfg Config) http.Handler {
	m := methods{"": cfg.failure(http.StatusMethodNotAllowed, "")}
	maps.Copy(m, handlers)
	return m
}

// failure answers with upstream's Status for what is not served. An empty text
// is upstream's for the code.
func (cfg Config) failure(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", text, 0, false)
		responsewriters.ErrorNegotiated(err, cfg.Serializer, schema.GroupVersion{}, w, r)
	}
}
