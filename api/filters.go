package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	serverfilters "k8s.io/apiserver/pkg/server/filters"

	"kontiki/api/audit"
	"kontiki/api/metrics"
	"kontiki/api/routes"
)

const (
	// requestTimeout bounds a request that is neither a watch nor a log, and
	// the two below bound how many may be in progress: upstream's defaults.
	requestTimeout      = 60 * time.Second
	maxReadsInFlight    = 400
	maxChangesInFlight  = 200
	longRunningVerb     = "watch"
	longRunningProxying = "proxy"
)

// chain is what a handler is wrapped with.
type chain struct {
	serializer    runtime.NegotiatedSerializer
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	audit         *audit.Log // nil: none
	metrics       *metrics.Metrics
	draining      context.Context // ends when the server begins to stop
}

// wrap puts the filters around a handler; the last one here is the first that a
// request meets. The order is upstream's. Left out of upstream's list are CORS,
// HSTS, tracing, and the filter that gives every request a second goroutine to
// time out: handlers here end when their context does.
func (c chain) wrap(handler http.Handler) http.Handler {
	info := paths{&request.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	handler = filters.WithAuthorization(handler, c.authorizer, c.serializer)
	handler = serverfilters.WithMaxInFlightLimit(handler, maxReadsInFlight, maxChangesInFlight, longRunning)
	handler = impersonation.WithConstrainedImpersonation(handler, c.authorizer, c.serializer)
	refuse := filters.Unauthorized(c.serializer)
	if c.audit != nil {
		handler = filters.WithAudit(handler, c.audit.Sink, c.audit.Policy, longRunning)
		refuse = filters.WithFailedAuthenticationAudit(refuse, c.audit.Sink, c.audit.Policy)
	}
	handler = filters.WithAuthentication(handler, c.authenticator, refuse, nil, nil)
	handler = filters.WithWarningRecorder(handler)
	handler = filters.WithRequestDeadline(handler, nil, nil, longRunning, c.serializer, requestTimeout)
	handler = c.withDraining(handler)
	handler = filters.WithCacheControl(handler)
	handler = c.metrics.Filter(handler, longRunning)
	handler = filters.WithRequestInfo(handler, info)
	handler = filters.WithRequestReceivedTimestamp(handler)
	handler = serverfilters.WithPanicRecovery(handler, info)
	return routes.OnGrownStack(filters.WithAuditInit(handler))
}

// paths finds out what a path asks for. One that upstream cannot make sense of,
// /api/v1/watch, asks for no resource; upstream answers 500.
type paths struct{ request.RequestInfoResolver }

// NewRequestInfo implements request.RequestInfoResolver.
func (p paths) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	info, err := p.RequestInfoResolver.NewRequestInfo(r)
	if err != nil {
		info = &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	}
	return info, nil
}

// longRunning tells requests that have no deadline of their own: they last as
// long as the client wants.
func longRunning(_ *http.Request, info *request.RequestInfo) bool {
	if info.Path == SnapshotPath || info.Verb == longRunningVerb || info.Verb == longRunningProxying {
		return true
	}
	switch info.Subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return info.IsResourceRequest
	default:
		return false
	}
}

// withDraining ends long-running requests when the server begins to stop, so
// that it need not wait for clients who never leave. A watch ends as it does at
// its timeout, and its client resumes on another node.
func (c chain) withDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(c.draining, cancel)
		defer stop()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
