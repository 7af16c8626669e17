// Package loopback lets parts of a server be clients of it, without a socket.
//
// Admission and the leader's duties use the same API as anybody else, through
// client-go; a request of theirs goes over a pipe in memory to the server's own
// handler.
package loopback

import (
	"context"
	"net"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Loopback is an HTTP server that only this process can reach.
type Loopback struct {
	listener *listener
	server   *http.Server
}

// Serve answers requests with handler until Close. It starts one goroutine for
// the listener, and one a connection.
func Serve(handler http.Handler) *Loopback {
	l := &Loopback{
		listener: &listener{conns: make(chan net.Conn), closed: make(chan struct{})},
		server:   &http.Server{Handler: handler},
	}
	go l.server.Serve(l.listener) // returns when Close closes the listener
	return l
}

// Config is for making clients. They are not rate limited: who runs in the
// server is trusted with it.
func (l *Loopback) Config() *rest.Config {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return l.listener.dial(ctx) }
	return &rest.Config{
		Host:          "http://loopback",
		Transport:     &http.Transport{DialContext: dial},
		QPS:           -1,
		UserAgent:     "kontiki",
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	}
}

// Client returns a typed client.
func (l *Loopback) Client() (kubernetes.Interface, error) { return kubernetes.NewForConfig(l.Config()) }

// Impatient returns a client that is not told when to come back, and so does not: client-go
// would ask ten times, for as long as the cluster has no leader, while a request that depends
// on it waits.
func (l *Loopback) Impatient() (kubernetes.Interface, error) {
	config := l.Config()
	config.Wrap(func(server http.RoundTripper) http.RoundTripper { return impatient{server} })
	return kubernetes.NewForConfig(config)
}

type impatient struct{ server http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.server.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// Close ends the server and every request in it.
func (l *Loopback) Close() error { return l.server.Close() }
