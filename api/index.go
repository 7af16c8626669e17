package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gorilla/mux"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// variable is a part of a route's path that differs from request to request.
var variable = regexp.MustCompile(`\{[^}]*\}`)

// mountIndex answers / with the paths that stand for themselves: all that the
// router knows but those of resources.
func mountIndex(router *mux.Router) {
	paths := map[string]bool{"/apis/": true, "/openapi/v3/": true} // upstream names these two as well
	// Walk fails only when the function does.
	_ = router.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if path = strings.TrimSuffix(path, "{slash:/*}"); err == nil && !variable.MatchString(path) && !strings.HasSuffix(path, "/") && !isResource(path) {
			paths[path] = true
		}
		return nil
	})
	index := metav1.RootPaths{Paths: make([]string, 0, len(paths))}
	for path := range paths {
		index.Paths = append(index.Paths, path)
	}
	slices.Sort(index.Paths)
	serve := func(w http.ResponseWriter, _ *http.Request) {
		responsewriters.WriteRawJSON(http.StatusOK, index, w)
	}
	router.Path("/").HandlerFunc(serve)
	router.Path("/index.html").HandlerFunc(serve)
}

// isResource says whether a path is below a group version.
func isResource(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] == "api" && len(parts) > 2 || parts[0] == "apis" && len(parts) > 3
}
