package discovery

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"kontiki/api/registry"
	"kontiki/api/routes"
	"kontiki/api/storage"
	"kontiki/fsm"
	"kontiki/watch"
)

// TestPathsAreUpstreams compares what package routes mounts on mux with what
// upstream's installer registers for the same storage: for every group the same
// methods on the same paths.
func TestPathsAreUpstreams(t *testing.T) {
	cfg := routes.Config{
		Scheme: registry.Scheme(), Serializer: registry.NewSerializer(), ParameterCodec: registry.ParameterCodec(),
		TypeConverter: registry.TypeConverter(), Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		MinWatchTimeout: time.Minute, MaxBodyBytes: 1 << 20,
	}
	groups := openGroups(t, cfg)
	documents := New(groups, cfg, "127.0.0.1:6443")
	for _, group := range groups {
		prefix := routes.Prefix(group.Version) + "/"
		ours := mounted(t, group, cfg)
		theirs := installed(t, documents, prefix)
		if len(theirs) == 0 {
			t.Errorf("%s: upstream's installer has registered nothing", group.Version)
		}
		for route := range theirs {
			if !ours[route] {
				t.Errorf("%s is upstream's and not ours", route)
			}
		}
		for route := range ours {
			if !theirs[route] {
				t.Errorf("%s is ours and not upstream's", route)
			}
		}
		t.Logf("%s: %d routes", group.Version, len(theirs))
	}
}

func openGroups(t *testing.T, cfg routes.Config) []registry.Group {
	t.Helper()
	hub := watch.NewHub(watch.Config{})
	options := registry.Options{Backend: storage.Backend{State: fsm.New(hub), Feed: hub}}
	allocators, err := registry.NewAllocators(options, registry.DefaultRanges())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := registry.Open(registry.Config{
		Options:        options,
		Allocators:     allocators,
		Authorizer:     cfg.Authorizer,
		EventTTL:       time.Hour,
		ProxyTransport: http.DefaultTransport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// mounted lists a group's routes on mux. A mux route has one handler for all
// methods of its path: a map whose keys are the methods, and "" for the others.
func mounted(t *testing.T, group registry.Group, cfg routes.Config) map[string]bool {
	t.Helper()
	router := mux.NewRouter()
	if err := routes.Mount(router, []registry.Group{group}, cfg); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	err := router.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err != nil || route.GetHandler() == nil {
			return err
		}
		handler := reflect.ValueOf(route.GetHandler())
		if handler.Kind() != reflect.Map { // the answer for everything that is not served
			return nil
		}
		for _, method := range handler.MapKeys() {
			if method.String() != "" {
				found[method.String()+" "+plain(path)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// installed lists the routes below prefix in the container of upstream's.
func installed(t *testing.T, documents *Documents, prefix string) map[string]bool {
	t.Helper()
	container, err := documents.container()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, service := range container.RegisteredWebServices() {
		for _, route := range service.Routes() {
			if path := plain(route.Path); strings.HasPrefix(path, prefix) && path != prefix {
				found[route.Method+" "+path] = true
			}
		}
	}
	return found
}

var pattern = regexp.MustCompile(`\{([a-z]+):[^}]*\}`)

// plain is a path without the pattern of its variables, which mux and
// go-restful write differently.
func plain(path string) string {
	return pattern.ReplaceAllString(strings.TrimSuffix(path, "{slash:/*}"), "{$1}")
}
