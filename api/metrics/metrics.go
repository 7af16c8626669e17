package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kontiki/cluster"
	"kontiki/fsm"
	"kontiki/watch"
)

// scrapesInFlight bounds how many scrapes are answered at a time.
const scrapesInFlight = 4

// Node is what a scrape asks the node.
type Node interface {
	Status() cluster.Status
	Members() []cluster.Member
	Timings() *cluster.Timings
	Disk() cluster.Disk
	Storage() cluster.Storage
	Backed() *cluster.Backed
	// Applied asks the other members for the index that they have applied. Who
	// does not answer in time is missing.
	Applied(ctx context.Context) map[string]uint64
}

// Certificate is one that the node needs, and until when it is good.
type Certificate struct {
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
}

// Sources is where the numbers come from. Those of a source that is nil are left
// out.
type Sources struct {
	Build, Kubernetes string // versions
	Node              Node
	View              func() *fsm.View
	Window            func() watch.Stats
	Certificates      func() []Certificate
}

// Metrics is the registry of one node.
type Metrics struct {
	sources  Sources
	started  time.Time
	requests *requests
	sizes    sizes
	rates    *rates
	registry *prometheus.Registry
	conns    connections
}

// New makes the registry. The sampling of rates ends with ctx.
func New(ctx context.Context, sources Sources) *Metrics {
	m := &Metrics{sources: sources, started: time.Now(), registry: prometheus.NewRegistry()}
	m.requests = newRequests(m.registry)
	m.rates = newRates(m.requests.totals)
	m.registry.MustRegister(
		collector{m},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	go m.rates.run(ctx)
	return m
}

// Handler serves GET /metrics.
func (m *Metrics) Handler(logger hclog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapesInFlight,
	})
}
