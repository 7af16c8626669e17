package proxy

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config says between what a proxy stands.
type Config struct {
	// Servers are the addresses to begin with, host:port, in the order of
	// preference; List, if set, is asked for newer ones.
	Servers []string
	List    func(ctx context.Context) ([]string, error)
	// Check says whether a server is well.
	Check func(ctx context.Context, address string) error

	CheckInterval, ListInterval time.Duration
	// Timeout bounds one dial, one check and one question for the list.
	Timeout time.Duration
	// MaxConns bounds the connections at a time; more wait in the listener.
	MaxConns int
	Logger   hclog.Logger
}

// DefaultConfig has everything but the servers and how to ask them.
func DefaultConfig() Config {
	return Config{
		CheckInterval: time.Second,
		ListInterval:  30 * time.Second,
		Timeout:       time.Second,
		MaxConns:      4096,
		Logger:        hclog.NewNullLogger(),
	}
}

// Proxy passes connections on.
type Proxy struct {
	Config
	servers servers
	running sync.WaitGroup
}

// New makes a proxy.
func New(cfg Config) *Proxy { return &Proxy{Config: cfg} }

// Serve passes on what the listener accepts until ctx ends. Then it closes the
// listener and every connection, and returns when all its goroutines have ended.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer p.running.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	p.update(ctx, p.Servers)
	if p.List != nil {
		p.running.Go(func() { p.follow(ctx) })
	}
	slots := make(chan struct{}, p.MaxConns)
	for {
		slots <- struct{}{}
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p.running.Go(func() {
			p.pass(ctx, conn)
			<-slots
		})
	}
}

// update takes a list of servers and begins to check those that are new.
func (p *Proxy) update(ctx context.Context, addresses []string) {
	for _, fresh := range p.servers.set(addresses) {
		checks, stop := context.WithCancel(ctx)
		p.servers.mu.Lock()
		fresh.stop = stop
		p.servers.mu.Unlock()
		p.running.Go(func() { p.watch(checks, fresh) })
	}
}

// follow asks for the list again and again. An answer without servers is none.
func (p *Proxy) follow(ctx context.Context) {
	for {
		asking, cancel := context.WithTimeout(ctx, p.Timeout)
		addresses, err := p.List(asking)
		cancel()
		if err != nil {
			p.Logger.Debug("cannot ask for the list of servers", "error", err)
		} else if len(addresses) > 0 {
			p.update(ctx, addresses)
		}
		if pause(ctx, p.ListInterval) != nil {
			return
		}
	}
}

// watch checks a server again and again.
func (p *Proxy) watch(ctx context.Context, s *server) {
	for {
		checking, cancel := context.WithTimeout(ctx, p.Timeout)
		err := p.Check(checking, s.address)
		cancel()
		if ctx.Err() != nil {
			return
		}
		p.note(s, err)
		if pause(ctx, p.CheckInterval) != nil {
			return
		}
	}
}

func (p *Proxy) note(s *server, err error) {
	if !p.servers.note(s, err != nil) {
		return
	}
	if err != nil {
		p.Logger.Warn("a server is not well", "server", s.address, "error", err)
		return
	}
	p.Logger.Info("a server is well again", "server", s.address)
}

// pass connects a client with the first server that takes the connection.
func (p *Proxy) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	for _, s := range p.servers.candidates() {
		dialer := net.Dialer{Timeout: p.Timeout}
		upstream, err := dialer.DialContext(ctx, "tcp", s.address)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.note(s, err)
			continue
		}
		p.servers.join(s, upstream)
		defer p.servers.leave(s, upstream)
		splice(ctx, client, upstream)
		return
	}
	p.Logger.Error("no server takes connections", "servers", p.servers.addresses())
}

// splice copies both ways until one has ended, or ctx has. TLS has no use for a
// connection of which one half is closed.
func splice(ctx context.Context, client, upstream net.Conn) {
	end := func() { client.Close(); upstream.Close() }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	done := make(chan struct{})
	move := func(to, from net.Conn) {
		defer end()
		// How it ended is for client and server to make sense of.
		_, _ = io.Copy(to, from)
	}
	go func() {
		defer close(done)
		move(upstream, client)
	}()
	move(client, upstream)
	<-done
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
