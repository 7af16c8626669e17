package metrics

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// recorder notes how a request is answered.
type recorder struct {
	http.ResponseWriter
	code  int
	bytes int64
}

var _ responsewriter.UserProvidedDecorator = (*recorder)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (r *recorder) Flush() {
	if flusher, ok := r.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Hijack implements http.Hijacker: who takes the connection over switches it to
// another protocol.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.code == 0 {
		r.code = http.StatusSwitchingProtocols
	}
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// status is the code that the client gets: that of a panic if the handler has
// not finished and has sent nothing.
func (r *recorder) status(finished bool) int {
	switch {
	case r.code != 0:
		return r.code
	case finished || r.bytes > 0:
		return http.StatusOK
	}
	return http.StatusInternalServerError
}

// connections counts a server's open connections.
type connections struct{ open atomic.Int64 }

// ConnState is for http.Server.ConnState.
func (m *Metrics) ConnState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		m.conns.open.Add(1)
	case http.StateHijacked, http.StateClosed:
		m.conns.open.Add(-1)
	}
}
