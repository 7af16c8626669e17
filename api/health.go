package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"k8s.io/apiserver/pkg/server/healthz"

	"kontiki/api/duties"
)

// readyTimeout bounds the question whether this node is up to date; without a
// quorum there is no answer.
const readyTimeout = 2 * time.Second

// mountHealth adds the health endpoints. They need no credentials (see package
// auth): what probes them usually has none, and they tell nothing but "ok" or
// which check failed.
func (s *Server) mountHealth(router *mux.Router) {
	alive := []healthz.HealthChecker{healthz.PingHealthz}
	ready := []healthz.HealthChecker{
		healthz.PingHealthz,
		healthz.NamedCheck("caught-up", s.checkCaughtUp),
		healthz.NamedCheck("namespaces", s.checkNamespaces),
		healthz.NewShutdownHealthz(s.draining.Done()),
	}
	paths := pathHandler{router}
	healthz.InstallPathHandler(paths, "/livez", alive...)
	healthz.InstallPathHandler(paths, "/healthz", alive...)
	healthz.InstallPathHandler(paths, "/readyz", ready...)
}

// checkCaughtUp fails unless this node has applied everything that was
// committed when it was asked.
func (s *Server) checkCaughtUp(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	return s.Node.Ready(ctx)
}

// checkNamespaces fails until the first leader has made the system namespaces.
func (s *Server) checkNamespaces(*http.Request) error {
	view := s.Backend.State.View()
	for _, name := range duties.SystemNamespaces {
		if _, ok := view.Get("/core/namespaces/" + name); !ok {
			return fmt.Errorf("namespace %s does not exist yet", name)
		}
	}
	return nil
}

// pathHandler lets upstream's health package register on a mux router.
type pathHandler struct{ router *mux.Router }

// Handle registers a path; one that ends in a slash covers everything below it.
func (p pathHandler) Handle(path string, handler http.Handler) {
	if path[len(path)-1] == '/' {
		p.router.PathPrefix(path).Handler(handler)
		return
	}
	p.router.Path(path).Handler(handler)
}
