// Package load is the clients of a chaos run: Kubernetes-shaped writes, reads and watches against real
// API servers, on few keys and on many, some clients on one node and some on all. They record what they do
// and see; whether it is right is not theirs to say. They never use an answer that they should not have
// had to make a request that is wrong.
package load

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"kontiki/scripts/chaos/history"
)

// Endpoint is a node's API.
type Endpoint struct {
	Node string // its name
	URL  string
}

// Config says against whom and how much. Zero values are replaced by defaults.
type Config struct {
	Endpoints []Endpoint
	REST      *rest.Config // CA and credentials; Host is set per endpoint
	Seed      uint64
	Namespace string // of its own: whatever is in it was written by this load

	Pinned  int           // clients on each node
	Moving  int           // clients that change the node
	Renewed int           // leases that are renewed in turn, by a client each
	Hot     int           // keys of each resource that everybody writes; new ones every Epoch
	Cold    int           // keys of each resource that are seldom written
	Epoch   time.Duration // bounds the calls on one key, and so the search for their order
	Pause   time.Duration // between two calls of a client, on average
	Timeout time.Duration // of most calls; some have ten times as much
	Grace   time.Duration // in which watches must show the last writes, at the end
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, fmt.Sprintf("chaos-%d", c.Seed))
	c.Pinned, c.Moving, c.Renewed = cmp.Or(c.Pinned, 2), cmp.Or(c.Moving, 4), cmp.Or(c.Renewed, 2)
	c.Hot, c.Cold = cmp.Or(c.Hot, 2), cmp.Or(c.Cold, 20)
	c.Epoch, c.Pause = cmp.Or(c.Epoch, 10*time.Second), cmp.Or(c.Pause, 25*time.Millisecond)
	c.Timeout, c.Grace = cmp.Or(c.Timeout, 2*time.Second), cmp.Or(c.Grace, 10*time.Second)
	return c
}

// Load is the clients at work.
type Load struct {
	cfg     Config
	rec     *history.Recorder
	clients []*Client // one a node

	latest atomic.Uint64             // the highest version that anybody has seen
	acked  map[string]*atomic.Uint64 // of each resource, the highest version that was acknowledged

	stopCalls, stopWatches context.CancelFunc
	callers, watchers      sync.WaitGroup
	audits                 []*audit
}

// Start starts the clients. They go on until Stop, or until ctx ends.
func Start(ctx context.Context, cfg Config, rec *history.Recorder) (*Load, error) {
	l := &Load{cfg: cfg.withDefaults(), rec: rec, acked: make(map[string]*atomic.Uint64)}
	for _, r := range resources {
		l.acked[r.name] = new(atomic.Uint64)
	}
	for _, e := range cfg.Endpoints {
		client, err := Dial(e, cfg.REST)
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, client)
	}
	watching, stopWatches := context.WithCancel(ctx)
	calling, stopCalls := context.WithCancel(watching)
	l.stopWatches, l.stopCalls = stopWatches, stopCalls
	l.start(calling, watching)
	return l, nil
}

func (l *Load) start(calling, watching context.Context) {
	call := func(name string, node int, run func(*caller, context.Context)) {
		c := l.newCaller(name, node)
		l.callers.Go(func() {
			if l.prepare(calling) {
				run(c, calling)
			}
		})
	}
	for n := range l.clients {
		for i := range l.cfg.Pinned {
			call(fmt.Sprintf("pinned-%d-%d", n, i), n, (*caller).work)
		}
		call(fmt.Sprintf("probe-%d", n), n, (*caller).probe)
		for _, r := range resources {
			a := &audit{l: l, node: n, resource: r}
			l.audits = append(l.audits, a)
			l.watchers.Go(func() { a.run(watching) })
		}
	}
	for i := range l.cfg.Moving {
		call(fmt.Sprintf("moving-%d", i), moves, (*caller).work)
	}
	for i := range l.cfg.Renewed {
		call(fmt.Sprintf("renews-%d", i), moves, (*caller).renew)
	}
	for i, r := range resources {
		l.watchers.Go(func() { l.roam(watching, r, l.random(fmt.Sprint("roams", i))) })
		l.watchers.Go(func() { l.stray(watching, r, l.random(fmt.Sprint("strays", i))) })
	}
}

// prepare makes the namespace, or waits until somebody else has.
func (l *Load) prepare(ctx context.Context) bool {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, l.cfg.Namespace)
	for i := 0; ; i++ {
		try, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
		a, err := l.clients[i%len(l.clients)].do(try, http.MethodPost, "/api/v1/namespaces", body, jsonType)
		cancel()
		if err == nil && (a.code == http.StatusCreated || a.code == http.StatusConflict) {
			return true
		}
		if !sleep(ctx, l.cfg.Pause) {
			return false
		}
	}
}

// Stop ends the clients. Watches get the time to show the last writes; the network should be in order.
func (l *Load) Stop() {
	l.stopCalls()
	l.callers.Wait()
	l.drain()
	l.stopWatches()
	l.watchers.Wait()
	for _, c := range l.clients {
		c.Close()
	}
}

// random makes the luck of one client, so that what one does changes nothing for another.
func (l *Load) random(name string) *rand.Rand {
	sum := l.cfg.Seed
	for _, b := range []byte(name) {
		sum = sum*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(l.cfg.Seed, sum))
}

// saw keeps the highest version that was seen.
func (l *Load) saw(rv uint64) { raise(&l.latest, rv) }

func raise(highest *atomic.Uint64, rv uint64) {
	for {
		now := highest.Load()
		if rv <= now || highest.CompareAndSwap(now, rv) {
			return
		}
	}
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
