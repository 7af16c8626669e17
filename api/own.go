package api

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/gorilla/mux"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"kontiki/api/routes"
)

// ownPrefix is where everything is served that Kubernetes does not have. All of
// it but auth.JoinPath needs the right to everything, see package auth.
const ownPrefix = "/kontiki/v1"

// own answers a request to one of Kontiki's own endpoints. What it returns is
// sent as JSON, an error as the Status that it is or becomes. It returns nil,
// nil after it has written the answer itself.
type own func(w http.ResponseWriter, r *http.Request) (any, error)

// ownEndpoints is the table of them: path below ownPrefix, method, function.
func (s *Server) ownEndpoints() map[string]map[string]own {
	return map[string]map[string]own{
		"/digest":                 {http.MethodGet: s.digest},
		"/status":                 {http.MethodGet: s.readStatus},
		"/snapshot":               {http.MethodGet: s.saveSnapshot, http.MethodPost: s.restoreSnapshot},
		"/members":                {http.MethodGet: s.listMembers},
		"/members/{name}":         {http.MethodDelete: s.removeMember},
		"/members/{name}/promote": {http.MethodPost: s.promoteMember},
		"/members/{name}/demote":  {http.MethodPost: s.demoteMember},
		"/transfer-leadership":    {http.MethodPost: s.transferLeadership},
		"/tokens":                 {http.MethodPost: s.createToken},
		"/join":                   {http.MethodPost: s.admitNode},
		"/certificates":           {http.MethodGet: s.listCertificates, http.MethodPost: s.renewCertificates},
		"/clientcertificates":     {http.MethodPost: s.signClient},
	}
}

// maxOwnBody is many times what these endpoints are sent.
const maxOwnBody = 64 << 10

func readJSON(r *http.Request, value any) error {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxOwnBody)).Decode(value); err != nil {
		return apierrors.NewBadRequest("the request's body is not the JSON that is expected here: " + err.Error())
	}
	return nil
}

func (s *Server) mountOwn(router *mux.Router, cfg routes.Config) {
	for path, functions := range s.ownEndpoints() {
		handlers := make(map[string]http.HandlerFunc)
		for method, function := range functions {
			handlers[method] = s.serveOwn(function, cfg)
		}
		router.Path(ownPrefix + path).Handler(routes.Methods(handlers, cfg))
	}
}

func (s *Server) serveOwn(function own, cfg routes.Config) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := function(w, r)
		if err != nil {
			if _, known := err.(apierrors.APIStatus); !known {
				err = apierrors.NewInternalError(err)
			}
			responsewriters.ErrorNegotiated(err, cfg.Serializer, schema.GroupVersion{}, w, r)
			return
		}
		if value == nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(value); err != nil {
			s.Logger.Debug("cannot send an answer", "path", r.URL.Path, "error", err)
		}
	}
}
