package loopback

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// listener hands one end of a pipe to who dials and the other to the server.
// The pipes are net.Pipe's, whose deadlines hold under net/http: it sets and
// clears one with every request.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*listener)(nil)

func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		// Not net.ErrClosed: client-go takes that for a connection that was lost,
		// and tries again for ten seconds.
		return nil, http.ErrServerClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "loopback" }
