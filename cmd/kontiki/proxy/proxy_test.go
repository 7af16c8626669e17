package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// backend answers each line with its name, until it is killed.
type backend struct {
	name     string
	listener net.Listener
	ill      atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{name: name, listener: listener}
	t.Cleanup(b.kill)
	go b.serve()
	return b
}

func (b *backend) serve() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.conns = append(b.conns, conn)
		b.mu.Unlock()
		go func() {
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				fmt.Fprintln(conn, b.name)
			}
		}()
	}
}

// kill closes the port and all connections, as the end of a process does.
func (b *backend) kill() {
	b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		conn.Close()
	}
}

func (b *backend) address() string { return b.listener.Addr().String() }

type rig struct {
	t       *testing.T
	address string
	all     []*backend
	checks  atomic.Int64
}

// newRig starts a proxy before backends of those names. Its first list has only
// the first of them if listed is set; asking tells of all.
func newRig(t *testing.T, listed bool, names ...string) *rig {
	t.Helper()
	r := &rig{t: t}
	var addresses []string
	byAddress := make(map[string]*backend)
	for _, name := range names {
		b := newBackend(t, name)
		r.all, addresses, byAddress[b.address()] = append(r.all, b), append(addresses, b.address()), b
	}
	cfg := DefaultConfig()
	cfg.CheckInterval, cfg.ListInterval = 5*time.Millisecond, 5*time.Millisecond
	cfg.Servers = addresses
	cfg.Check = func(_ context.Context, address string) error {
		r.checks.Add(1)
		if byAddress[address].ill.Load() {
			return errors.New("ill")
		}
		return nil
	}
	if listed {
		cfg.Servers = addresses[:1]
		cfg.List = func(context.Context) ([]string, error) { return addresses, nil }
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- New(cfg).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) dial() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// ask says which backend a connection leads to; empty: it is closed.
func ask(conn net.Conn) string {
	if _, err := fmt.Fprintln(conn, "who"); err != nil {
		return ""
	}
	name, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(name)
}

// until waits for what takes a few rounds of checks.
func (r *rig) until(what string, check func() bool) {
	r.t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-deadline:
			r.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func TestPassesToTheFirst(t *testing.T) {
	r := newRig(t, false, "a", "b")
	for range 3 {
		if name := ask(r.dial()); name != "a" {
			t.Errorf("the answer is from %q", name)
		}
	}
}

func TestNoConnectionIsLostWhenAServerIsGone(t *testing.T) {
	r := newRig(t, false, "a", "b", "c")
	ask(r.dial())
	r.all[0].kill()
	for range 20 {
		if name := ask(r.dial()); name != "b" {
			t.Fatalf("the answer is from %q", name)
		}
	}
}

func TestConnectionsOfAnIllServerAreClosed(t *testing.T) {
	r := newRig(t, false, "a", "b")
	old := r.dial()
	if name := ask(old); name != "a" {
		t.Fatalf("the answer is from %q", name)
	}
	r.all[0].ill.Store(true)
	if rest, err := io.ReadAll(old); err != nil || len(rest) > 0 { // returns when it is closed
		t.Errorf("read %q, %v", rest, err)
	}
	if name := ask(r.dial()); name != "b" {
		t.Errorf("then the answer is from %q", name)
	}
	r.all[0].ill.Store(false)
	r.until("the first server to be preferred again", func() bool { return ask(r.dial()) == "a" })
}

func TestConnectionsStayWhenNoServerIsWell(t *testing.T) {
	r := newRig(t, false, "a", "b")
	conn := r.dial()
	ask(conn)
	r.all[0].ill.Store(true)
	r.all[1].ill.Store(true)
	seen := r.checks.Load()
	r.until("more checks to fail than close a connection", func() bool { return r.checks.Load() > seen+4*failuresToClose })
	if name := ask(conn); name != "a" {
		t.Errorf("the old connection leads to %q", name)
	}
	if name := ask(r.dial()); name == "" {
		t.Error("a new connection must still be tried")
	}
}

func TestTheListIsFollowed(t *testing.T) {
	r := newRig(t, true, "a", "b")
	r.all[0].kill()
	r.until("the second server to be known", func() bool { return ask(r.dial()) == "b" })
}

func TestNoServer(t *testing.T) {
	r := newRig(t, false, "a")
	r.all[0].kill()
	if name := ask(r.dial()); name != "" {
		t.Errorf("the answer is from %q", name)
	}
}
