package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"kontiki/cluster/pki"
)

// One TCP port serves raft and forwarding; ALPN says which one a connection is for.
const (
	protoRaft = "kontiki-raft/2"
	protoPeer = "kontiki-peer/2"

	// Without greetings, see founding.go.
	protoRaft1 = "kontiki-raft/1"
	protoPeer1 = "kontiki-peer/1"

	// repeatWarning is how often the same peer's refusal is worth a line in the log.
	repeatWarning = time.Minute
	maxWarned     = 64

	// maxHandshakes bounds what strangers can make a node do at once, handshakeTimeout for how long.
	maxHandshakes    = 128
	handshakeTimeout = 5 * time.Second
)

// listener is the peer port. To raft it is a StreamLayer; forwarding connections go to serve.
type listener struct {
	tcp       *net.TCPListener
	advertise peerAddr
	identity  *pki.Identity
	founding  foundings
	logger    hclog.Logger
	serve     func(conn net.Conn, peer string)
	lost      func(peer string) // a raft connection from peer has ended

	raftConns chan net.Conn
	life      context.Context // until Close, or until whoever only dials is done
	end       context.CancelFunc
	wg        sync.WaitGroup

	mu     sync.Mutex
	shut   bool                 // guarded by mu
	conns  map[net.Conn]string  // guarded by mu; accepted and dialed, and the other end's founding
	warned map[string]time.Time // guarded by mu; when a peer's refusal was logged
}

var (
	errOwnName    = errors.New("it has this node's own name: names must be unique")
	errProtocol   = errors.New("it speaks neither raft nor forwarding")
	errNotEntered = errors.New("one of the two nodes has not entered a cluster yet")
)

var _ raft.StreamLayer = (*listener)(nil)

// peerAddr is what others dial, which may be a name: it is not resolved here.
type peerAddr string

func (peerAddr) Network() string  { return "tcp" }
func (a peerAddr) String() string { return string(a) }

// listen binds the peer port; run starts accepting.
func listen(cfg *Config) (*listener, error) {
	tcp, err := net.Listen("tcp", cfg.PeerAddr)
	if err != nil {
		return nil, fmt.Errorf("%w for peers: %w: is another kontiki running, or is --peer-addr %s not this machine's?", ErrListen, err, cfg.PeerAddr)
	}
	advertise, err := advertised(cfg.PeerAdvertise, tcp.Addr().String())
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	life, end := context.WithCancel(context.Background())
	return &listener{
		tcp:       tcp.(*net.TCPListener),
		advertise: peerAddr(advertise),
		identity:  cfg.Identity,
		logger:    cfg.Logger.Named("peer"),
		raftConns: make(chan net.Conn),
		life:      life,
		end:       end,
		conns:     make(map[net.Conn]string),
		warned:    make(map[string]time.Time),
	}, nil
}

// advertised completes what others dial: a missing address or port is the bound one, and an
// address that is none (0.0.0.0) is refused, as it would lead others to themselves.
func advertised(want, bound string) (string, error) {
	host, port, err := net.SplitHostPort(bound)
	if err != nil {
		return "", err
	}
	if want != "" {
		wantHost, wantPort, err := net.SplitHostPort(want)
		if err != nil {
			wantHost, wantPort = want, "0"
		}
		if wantHost != "" {
			host = wantHost
		}
		if wantPort != "0" {
			port = wantPort
		}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%w: other nodes cannot dial %s: set the address to advertise", ErrConfig, net.JoinHostPort(host, port))
	}
	return net.JoinHostPort(host, port), nil
}

func (l *listener) run() {
	l.wg.Go(func() {
		tokens := make(chan struct{}, maxHandshakes)
		for {
			conn, err := l.tcp.AcceptTCP()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				// Out of file descriptors, most likely: give others time to close theirs.
				l.logger.Error("cannot accept a peer", "error", err)
				if !l.pause(100 * time.Millisecond) {
					return
				}
				continue
			}
			select {
			case tokens <- struct{}{}:
				l.wg.Go(func() { l.admit(conn, func() { <-tokens }) })
			default:
				conn.Close()
			}
		}
	})
}

func (l *listener) pause(d time.Duration) bool {
	select {
	case <-l.life.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// admit authenticates a peer and hands the connection to whom it is for.
func (l *listener) admit(raw *net.TCPConn, release func()) {
	setUserTimeout(raw)
	known := append(l.founding.protocols(true), l.founding.protocols(false)...)
	var offer offered
	conn := tls.Server(raw, offer.listen(l.identity.PeerServer(known...)))
	if !l.track(conn) {
		release()
		return
	}
	peer, protocol, err := l.shake(conn)
	release()
	if err != nil {
		if !errors.Is(err, io.EOF) && l.worthWarning(peer) { // EOF: someone only looked whether the port is open
			l.logger.Warn("refused a peer", "name", peer, "from", raw.RemoteAddr(), "error", offer.explain(err, known...))
		}
		l.drop(conn)
		return
	}
	l.route(&trackedConn{Conn: conn, listener: l, peer: peer}, protocol, peer)
}

// shake finds out who has called and for what, and whether they may.
func (l *listener) shake(conn *tls.Conn) (peer, protocol string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return "", "", err
	}
	state := conn.ConnectionState()
	peer, _ = pki.NodeName(state) // verified in the handshake
	protocol = state.NegotiatedProtocol
	if peer == l.identity.Name {
		return peer, protocol, errOwnName
	}
	if protocol == "" {
		return peer, protocol, errProtocol
	}
	theirs, err := l.greet(conn, protocol, false)
	if err == nil {
		err = l.know(conn, protocol, theirs)
	}
	return peer, protocol, err
}

// know notes the other end's founding, and looks again: this node's own may have come meanwhile.
func (l *listener) know(conn net.Conn, protocol, theirs string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, tracked := l.conns[conn]; !tracked {
		return net.ErrClosed
	}
	l.conns[conn] = theirs
	return l.related(protocol, theirs)
}

// dropOthers cuts the connections to nodes that have not said to be of founding id.
func (l *listener) dropOthers(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn, theirs := range l.conns {
		if theirs != id {
			conn.(*tls.Conn).NetConn().Close()
		}
	}
}

// worthWarning says whether to log that a peer was refused: one of another founding, or
// that has not entered yet, tries again all the time.
func (l *listener) worthWarning(peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer == "" {
		return true // a stranger
	}
	if len(l.warned) >= maxWarned {
		clear(l.warned)
	}
	if time.Since(l.warned[peer]) < repeatWarning {
		return false
	}
	l.warned[peer] = time.Now()
	return true
}

func (l *listener) route(conn net.Conn, protocol, peer string) {
	switch protocol {
	case protoRaft, protoRaft1:
		select {
		case l.raftConns <- conn:
		case <-l.life.Done():
			conn.Close()
		}
	case protoPeer, protoPeer1:
		l.serve(conn, peer)
		conn.Close()
	}
}

// Accept implements raft.StreamLayer.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.raftConns:
		return conn, nil
	case <-l.life.Done():
		return nil, net.ErrClosed
	}
}

// Addr implements raft.StreamLayer: what others dial.
func (l *listener) Addr() net.Addr { return l.advertise }

// Dial implements raft.StreamLayer. The address is a dialAddr.
func (l *listener) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	name, addr, ok := strings.Cut(string(address), "@")
	if !ok {
		return nil, fmt.Errorf("peer address %q names no node", address)
	}
	return l.dial(name, addr, protoRaft, timeout)
}

// dialAddr puts the node's name before its address, because raft's Dial is told only the
// address, and a peer is verified by name.
func dialAddr(name raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(string(name) + "@" + string(addr))
}

func (l *listener) dial(name, addr, protocol string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.life, timeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	setUserTimeout(raw.(*net.TCPConn))
	config := l.identity.PeerClient(name, protocol)
	config.NextProtos = l.founding.protocols(isRaft(protocol))
	conn := tls.Client(raw, config)
	if !l.track(conn) {
		return nil, net.ErrClosed
	}
	if err := l.introduce(ctx, conn); err != nil {
		l.drop(conn)
		return nil, fmt.Errorf("node %s at %s: %w", name, addr, protocolMismatch(protocol, err))
	}
	return &trackedConn{Conn: conn, listener: l}, nil
}

// introduce is the dialer's side of shake.
func (l *listener) introduce(ctx context.Context, conn *tls.Conn) error {
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	protocol := conn.ConnectionState().NegotiatedProtocol
	theirs, err := l.greet(conn, protocol, true)
	if err != nil {
		return err
	}
	return l.know(conn, protocol, theirs)
}

// Close stops listening, ends dials, and cuts every connection, also those that raft has
// pooled or is reading from, which it would leave open. Raft does not shut down before its
// dials have ended, and it dials twice.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.shut {
		l.mu.Unlock()
		return nil
	}
	l.shut = true
	l.end()
	for conn := range l.conns {
		// Below TLS: its own Close waits for a peer that may not read.
		conn.(*tls.Conn).NetConn().Close()
	}
	l.mu.Unlock()
	return l.tcp.Close()
}

// wait returns when no goroutine of the listener is left.
func (l *listener) wait() { l.wg.Wait() }

func (l *listener) track(conn *tls.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		conn.NetConn().Close()
		return false
	}
	l.conns[conn] = ""
	return true
}

func (l *listener) drop(conn net.Conn) {
	conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// trackedConn forgets itself when closed.
type trackedConn struct {
	net.Conn
	listener *listener
	peer     string // who dialed it; empty if this node did
}

func (c *trackedConn) Close() error {
	c.listener.drop(c.Conn)
	if c.peer != "" {
		c.listener.lost(c.peer)
	}
	return nil
}
