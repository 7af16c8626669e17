package api

import (
	"net/http"
	"net/http/pprof"

	"github.com/gorilla/mux"
)

// mountProfiling adds Go's profiles, for those who may see everything.
func mountProfiling(router *mux.Router) {
	handlers := map[string]http.HandlerFunc{
		"cmdline": pprof.Cmdline,
		"profile": pprof.Profile,
		"symbol":  pprof.Symbol,
		"trace":   pprof.Trace,
	}
	for name, handler := range handlers {
		router.Path("/debug/pprof/" + name).HandlerFunc(handler)
	}
	router.PathPrefix("/debug/pprof/").HandlerFunc(pprof.Index)
}
