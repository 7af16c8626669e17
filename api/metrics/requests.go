package metrics

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// The labels are kube-apiserver's, so that its dashboards show Kontiki too.
var (
	kindLabels = []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	callLabels = append([]string{"dry_run"}, kindLabels...)
)

// requests counts what clients ask.
type requests struct {
	total       *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	responses   *prometheus.HistogramVec
	bodies      *prometheus.HistogramVec
	longRunning *prometheus.GaugeVec
	reading     prometheus.Gauge
	changing    prometheus.Gauge

	totals *totals

	known  atomic.Pointer[map[kind]bool]    // what is served: nothing else becomes a label
	series atomic.Pointer[map[call]*series] // replaced, never changed: readers take no lock
	mu     sync.Mutex                       // held while it is replaced
}

// kind is a resource or subresource that is served.
type kind struct{ group, version, resource, subresource string }

// call is what a series is of, beside the status code.
type call struct {
	kind
	verb, scope, dryRun string
	long                bool
}

// series is the children of one call, resolved once.
type series struct {
	longRunning prometheus.Gauge // nil if the call is not; else there are no
	duration    prometheus.Observer
	size        prometheus.Observer // of answers or bodies, whatever is the larger one
	labels      prometheus.Labels
	codes       atomic.Pointer[[]coded] // replaced, never changed
}

// coded is the counter of one status code.
type coded struct {
	code    int
	counter prometheus.Counter
}

// totals is what the rates are made of.
type totals struct{ reads, writes, failures atomic.Uint64 }

func newRequests(to prometheus.Registerer) *requests {
	sizes := prometheus.ExponentialBuckets(256, 8, 7) // to 64 MiB
	r := &requests{
		totals: new(totals),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Requests that were answered, by what was asked and by status code.",
		}, append([]string{"code"}, callLabels...)),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its answer; not of watches and other long-running ones.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .2, .4, .6, 1, 2, 5, 10, 30, 60},
		}, callLabels),
		responses: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_response_sizes", Help: "Bytes of the answers to GET and LIST.", Buckets: sizes,
		}, kindLabels),
		bodies: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_body_size_bytes", Help: "Bytes of the bodies of writes.", Buckets: sizes,
		}, kindLabels),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Watches and other long-running requests in progress.",
		}, kindLabels),
	}
	inflight := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "apiserver_current_inflight_requests", Help: "Requests in progress that are not long-running.",
	}, []string{"request_kind"})
	r.reading, r.changing = inflight.WithLabelValues("readOnly"), inflight.WithLabelValues("mutating")
	r.known.Store(&map[kind]bool{})
	r.series.Store(&map[call]*series{})
	to.MustRegister(r.total, r.duration, r.responses, r.bodies, r.longRunning, inflight)
	return r
}

// Know adds a resource, or a subresource, that is served. What is asked for and
// not known is counted without a name, or strangers could make series at will.
func (m *Metrics) Know(group, version, name string) {
	m.requests.mu.Lock()
	defer m.requests.mu.Unlock()
	known := maps.Clone(*m.requests.known.Load())
	resource, subresource, _ := strings.Cut(name, "/")
	known[kind{group, version, resource, subresource}] = true
	m.requests.known.Store(&known)
}

// Filter counts the requests that pass through it. Its place is behind the
// filter that finds out what is asked, and before all that may refuse.
func (m *Metrics) Filter(next http.Handler, longRunning request.LongRunningRequestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		long := longRunning(req, info)
		s := m.requests.of(req, info, long)
		gauge := m.requests.gauge(s, info)
		gauge.Inc()
		answer := &recorder{ResponseWriter: w}
		start, finished := time.Now(), false
		defer func() {
			gauge.Dec()
			m.requests.done(s, info, answer.status(finished), time.Since(start), answer.bytes, req.ContentLength)
		}()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), req)
		finished = true
	})
}

func reads(verb string) bool { return verb == "get" || verb == "list" }

func (r *requests) gauge(s *series, info *request.RequestInfo) prometheus.Gauge {
	switch {
	case s.longRunning != nil:
		return s.longRunning
	case reads(info.Verb):
		return r.reading
	}
	return r.changing
}

func (r *requests) done(s *series, info *request.RequestInfo, code int, took time.Duration, sent, received int64) {
	r.counter(s, code).Inc()
	if code >= http.StatusInternalServerError {
		r.totals.failures.Add(1)
	}
	if s.longRunning != nil {
		return
	}
	s.duration.Observe(took.Seconds())
	if reads(info.Verb) {
		r.totals.reads.Add(1)
		s.size.Observe(float64(sent))
		return
	}
	r.totals.writes.Add(1)
	if received > 0 {
		s.size.Observe(float64(received))
	}
}

// of returns the series of a request.
func (r *requests) of(req *http.Request, info *request.RequestInfo, long bool) *series {
	c := call{verb: verbOf(req, info), long: long}
	if k := (kind{info.APIGroup, info.APIVersion, info.Resource, info.Subresource}); info.IsResourceRequest && (*r.known.Load())[k] {
		c.kind, c.scope = k, scopeOf(info)
		if strings.Contains(req.URL.RawQuery, "dryRun=All") {
			c.dryRun = "All"
		}
	}
	if s := (*r.series.Load())[c]; s != nil {
		return s
	}
	return r.add(c)
}

// verbOf names a verb as upstream's metrics do, which is mostly as HTTP does.
func verbOf(req *http.Request, info *request.RequestInfo) string {
	switch info.Verb {
	case "get":
		return "GET"
	case "list":
		return "LIST"
	case "watch":
		return "WATCH"
	case "create", "post":
		return "POST"
	case "update", "put":
		return "PUT"
	case "patch":
		if req.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
			return "APPLY"
		}
		return "PATCH"
	case "delete":
		return "DELETE"
	case "deletecollection":
		return "DELETECOLLECTION"
	case "proxy":
		return "CONNECT"
	}
	return "OTHER"
}

func scopeOf(info *request.RequestInfo) string {
	switch {
	case info.Name != "" || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// add makes the series of a call. There are no more than what is served has
// verbs and scopes.
func (r *requests) add(c call) *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := *r.series.Load()
	if s := all[c]; s != nil {
		return s
	}
	labels := prometheus.Labels{
		"verb": c.verb, "group": c.group, "version": c.version, "resource": c.resource,
		"subresource": c.subresource, "scope": c.scope, "component": "apiserver",
	}
	s := &series{labels: maps.Clone(labels)}
	s.labels["dry_run"] = c.dryRun
	switch {
	case c.long:
		s.longRunning = r.longRunning.With(labels)
	case c.verb == "GET" || c.verb == "LIST":
		s.duration, s.size = r.duration.With(s.labels), r.responses.With(labels)
	default:
		s.duration, s.size = r.duration.With(s.labels), r.bodies.With(labels)
	}
	s.codes.Store(new([]coded))
	all = maps.Clone(all)
	all[c] = s
	r.series.Store(&all)
	return s
}

// counter returns the counter of a status code.
func (r *requests) counter(s *series, code int) prometheus.Counter {
	for _, c := range *s.codes.Load() {
		if c.code == code {
			return c.counter
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	labels := maps.Clone(s.labels)
	labels["code"] = strconv.Itoa(code)
	c := coded{code, r.total.With(labels)} // the same one for whoever was as fast
	before := *s.codes.Load()
	after := append(before[:len(before):len(before)], c)
	s.codes.Store(&after)
	return c.counter
}
