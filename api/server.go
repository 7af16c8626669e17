package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/api/audit"
	"kontiki/api/auth"
	"kontiki/api/discovery"
	"kontiki/api/duties"
	"kontiki/api/loopback"
	"kontiki/api/metrics"
	"kontiki/api/registry"
	"kontiki/api/routes"
	"kontiki/api/storage"
	"kontiki/cluster"
	"kontiki/cluster/pki"
	"kontiki/watch"
)

const (
	// maxBodyBytes and minWatchTimeout are upstream's defaults.
	maxBodyBytes    = 3 << 20
	minWatchTimeout = 30 * time.Minute
	// headerTimeout bounds how long a client may take to say what it wants.
	headerTimeout = 32 * time.Second
)

// Node is what the server asks its node beside storing and reading. A change of
// the membership returns what it has done.
type Node interface {
	Ready(ctx context.Context) error
	Leader() (name, apiAddr string, ok bool)
	Status() cluster.Status
	Backup() cluster.Backup
	Restore(ctx context.Context, backup io.Reader) (cluster.Restored, error)
	Members() []cluster.Member
	Survey(ctx context.Context) []cluster.Member
	Remove(ctx context.Context, name string) (string, error)
	Promote(ctx context.Context, name string) (string, error)
	Demote(ctx context.Context, name string) (string, error)
	TransferLeadership(ctx context.Context, to string) (string, error)
}

// Config is what a server is made of.
type Config struct {
	Name    string // of the node
	Build   string // Kontiki's own version
	Address string // host:port at which clients reach this server
	TLS     *tls.Config
	// Authenticator says who a request comes from, see auth.NewAuthenticator.
	Authenticator authenticator.Request
	// Root signs for clients and lets new nodes in.
	Root         *pki.Cluster
	Certificates Certificates
	EventTTL     time.Duration
	Kubelet      registry.Kubelet
	Ranges       registry.Ranges // of services' addresses and ports
	Node         Node
	Backend      storage.Backend
	// Reporter, if set, is the node once more, for metrics and the status of all
	// members; Window is for these too.
	Reporter Reporter
	Window   func() watch.Stats
	// Audit is where requests are written down; nil is nowhere.
	Audit  *audit.Log
	Logger hclog.Logger
}

// Server serves the API of one node.
type Server struct {
	Config
	http      *http.Server
	loopback  *loopback.Loopback
	metrics   *metrics.Metrics
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	services  *registry.Allocators
	sources   map[schema.GroupVersionResource]duties.Source
	draining  context.Context
	drain     context.CancelFunc
}

// New makes a server, without listening. It answers in memory at once: see
// Client.
func New(cfg Config) (*Server, error) {
	s := &Server{Config: cfg}
	s.draining, s.drain = context.WithCancel(context.Background())
	router := mux.NewRouter().SkipClean(true)
	serializer := registry.NewSerializer()
	authorizer := auth.NewAuthorizer()
	s.metrics = s.newMetrics()
	filters := chain{
		serializer: serializer, authenticator: auth.Self(), authorizer: authorizer,
		audit: cfg.Audit, metrics: s.metrics, draining: s.draining,
	}
	s.loopback = loopback.Serve(filters.wrap(router))
	if err := s.mount(router, routes.Config{
		Scheme: registry.Scheme(), Serializer: serializer, ParameterCodec: registry.ParameterCodec(),
		TypeConverter: registry.TypeConverter(), Authorizer: authorizer,
		MinWatchTimeout: minWatchTimeout, MaxBodyBytes: maxBodyBytes,
	}); err != nil {
		s.loopback.Close()
		return nil, err
	}
	filters.authenticator = cfg.Authenticator
	s.http = &http.Server{
		Handler:           filters.wrap(router),
		TLSConfig:         cfg.TLS,
		ConnState:         s.metrics.ConnState,
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          cfg.Logger.Named("http").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return s, nil
}

// newMetrics connects the metrics with what they are of.
func (s *Server) newMetrics() *metrics.Metrics {
	sources := metrics.Sources{
		Build: s.Build, Kubernetes: registry.Release,
		View: s.Backend.State.View, Window: s.Window, Certificates: s.expiries,
	}
	if s.Reporter != nil {
		sources.Node = s.Reporter
	}
	m := metrics.New(s.draining, sources)
	if s.Reporter != nil {
		s.Reporter.OnReport(m.Encoded)
	}
	return m
}

// mount fills the router.
func (s *Server) mount(router *mux.Router, cfg routes.Config) (err error) {
	if s.client, err = s.loopback.Client(); err != nil {
		return err
	}
	s.informers = informers.NewSharedInformerFactory(s.client, 0)
	options := registry.Options{Backend: s.Backend, Encodings: storage.NewEncodings(storage.DefaultEncodingBytes)}
	if s.services, err = registry.NewAllocators(options, s.Ranges); err != nil {
		return err
	}
	groups, err := registry.Open(registry.Config{
		Options:        options,
		Allocators:     s.services,
		Authorizer:     cfg.Authorizer,
		EventTTL:       s.EventTTL,
		Kubelet:        s.Kubelet,
		ProxyTransport: http.DefaultTransport,
	})
	if err != nil {
		return err
	}
	if cfg.Admission, err = s.newAdmission(groups); err != nil {
		return err
	}
	s.sources = map[schema.GroupVersionResource]duties.Source{}
	for _, group := range groups {
		for name, storage := range group.Storage {
			s.metrics.Know(group.Version.Group, group.Version.Version, name)
			if source, ok := storage.(duties.Source); ok {
				s.sources[group.Version.WithResource(name)] = source
			}
		}
	}
	s.mountElsewhere(routes.Elsewhere(router), groups, cfg)
	if err := routes.Mount(router, groups, cfg); err != nil {
		return err
	}
	mountIndex(router)
	s.informers.Start(s.draining.Done())
	return nil
}

// mountElsewhere adds what is not about resources.
func (s *Server) mountElsewhere(router *mux.Router, groups []registry.Group, cfg routes.Config) {
	documents := discovery.New(groups, cfg, s.Address)
	for _, path := range documents.Paths() {
		router.Path(path + "{slash:/*}").Handler(documents)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3"} {
		router.Path(path).HandlerFunc(documents.ServeOpenAPI)
	}
	router.PathPrefix("/openapi/v3/").HandlerFunc(documents.ServeOpenAPI)
	router.Path("/version{slash:/*}").Handler(routes.Get(s.serveVersion, cfg))
	s.mountOwn(router, cfg)
	s.mountHealth(router)
	mountProfiling(router)
	router.Path("/metrics").Handler(routes.Get(s.metrics.Handler(s.Logger.Named("metrics")).ServeHTTP, cfg))
}

// newAdmission makes the judges of writes.
func (s *Server) newAdmission(groups []registry.Group) (registry.Admission, error) {
	asking, err := s.loopback.Impatient()
	if err != nil {
		return nil, err
	}
	stored, err := registry.StoredIn(groups)
	if err != nil {
		return nil, err
	}
	return registry.NewAdmission(asking, s.informers, stored)
}

// serveVersion says which Kubernetes this is.
func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	responsewriters.WriteRawJSON(http.StatusOK, registry.Version(s.Build), w)
}

// Client returns a client of this server that works before it listens, with
// the rights of the server itself.
func (s *Server) Client() kubernetes.Interface { return s.client }

// ClientConfig is for making other clients of that kind.
func (s *Server) ClientConfig() *rest.Config { return s.loopback.Config() }

// Sources are the kinds that are served, to be listed and watched without a client.
func (s *Server) Sources() map[schema.GroupVersionResource]duties.Source { return s.sources }

// Allocators give services their addresses and ports.
func (s *Server) Allocators() *registry.Allocators { return s.services }

// Serve answers requests on the listener until Shutdown.
func (s *Server) Serve(listener net.Listener) error {
	err := s.http.ServeTLS(listener, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the API: %w", err)
}

// Shutdown ends watches, lets other requests finish until ctx ends, and closes
// what is left. Clients in this process go on until Close.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}

// Close closes every connection at once, also those within this process.
func (s *Server) Close() error {
	err := s.http.Close()
	s.drain()
	s.informers.Shutdown()
	return errors.Join(err, s.loopback.Close())
}
