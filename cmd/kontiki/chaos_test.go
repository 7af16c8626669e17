package main

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kontiki/scripts/chaos/check"
	"kontiki/scripts/chaos/history"
	"kontiki/scripts/chaos/load"
)

// How long, and for how many calls, the load of the chaos runs works on nodes that nothing is done
// to, and how long between two things that are. A busy machine takes longer for the calls.
const (
	calmTime       = 4 * time.Second
	calmCalls      = 500
	calmLimit      = time.Minute
	betweenCrashes = time.Second
)

// TestLoad has the clients of the chaos runs work on three nodes without a fault, and every checker
// look at what they saw. It says that the promises hold on a good day, and that neither the clients nor the
// checkers cry wolf.
func TestLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	seed := rand.Uint64()
	h, final := c.load(seed, c.calm)
	for _, f := range check.All(h, final) {
		t.Errorf("seed %d: %s", seed, f)
	}
	counts := map[history.Kind]int{}
	events := 0
	for _, op := range h.Ops {
		if op.Outcome == history.OK {
			counts[op.Kind]++
		}
	}
	for _, w := range h.Watches {
		events += len(w.Events)
	}
	t.Logf("%d calls, succeeded: %v; %d watches, %d events, %d digests", len(h.Ops), counts, len(h.Watches), events, len(h.Digests))
	for _, kind := range []history.Kind{history.Create, history.Update, history.Set, history.Delete, history.Get, history.List} {
		if counts[kind] == 0 {
			t.Errorf("no %s succeeded", kind)
		}
	}
	if events == 0 || len(h.Digests) == 0 || len(final.Lists) != 9 {
		t.Errorf("%d events, %d digests, %d lists at the end", events, len(h.Digests), len(final.Lists))
	}
}

// TestLoadThroughCrashes kills the leader, then a follower, then all, under load, and starts them again:
// lists in pages and watches go on elsewhere, and nothing acknowledged is lost.
func TestLoadThroughCrashes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	seed := rand.Uint64()
	h, final := c.load(seed, func(rec *history.Recorder) {
		for _, who := range []func() []int{
			func() []int { return []int{c.leader()} },
			func() []int { return c.followers()[:1] },
			c.up,
		} {
			c.wait(betweenCrashes)
			down := who()
			for _, i := range down {
				rec.Note("kill " + c.nodes[i].cfg.Name)
				c.crash(i)
			}
			c.wait(betweenCrashes)
			for _, i := range down {
				rec.Note("start " + c.nodes[i].cfg.Name)
				c.start(i)
			}
			c.waitReady()
		}
		c.wait(betweenCrashes)
	})
	for _, f := range check.All(h, final) {
		t.Errorf("seed %d: %s", seed, f)
	}
	c.checkEqual()
}

// calm lets the load work.
func (c *testCluster) calm(rec *history.Recorder) {
	began := time.Now()
	for c.wait(calmTime); rec.Calls() < calmCalls && time.Since(began) < calmLimit; {
		c.wait(calmTime / 4)
	}
}

// wait lets time pass: that much load.
func (c *testCluster) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.t.Context().Done():
	}
}

// load has clients work while something is done to the cluster, and returns what they saw and left.
func (c *testCluster) load(seed uint64, meanwhile func(*history.Recorder)) (*history.History, check.Final) {
	c.t.Helper()
	return c.loadThrough(c.clientConfig(0), seed, meanwhile)
}

// loadThrough is load with credentials, and a transport, of one's own. The state that is left is read
// without.
func (c *testCluster) loadThrough(config *rest.Config, seed uint64, meanwhile func(*history.Recorder)) (*history.History, check.Final) {
	c.t.Helper()
	dir := os.Getenv("KONTIKI_TEST_HISTORY")
	if dir == "" {
		dir = c.t.TempDir()
	}
	rec, err := history.NewRecorder(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rec.Close()
	cfg := load.Config{REST: config, Seed: seed}
	for _, n := range c.nodes {
		cfg.Endpoints = append(cfg.Endpoints, load.Endpoint{Node: n.cfg.Name, URL: n.URL})
	}
	l, err := load.Start(c.t.Context(), cfg, rec)
	if err != nil {
		c.t.Fatal(err)
	}
	meanwhile(rec)
	l.Stop()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cfg.REST = c.clientConfig(0)
	final, err := check.Collect(ctx, cfg, rec)
	if err != nil {
		c.t.Fatal(err)
	}
	return rec.History(), final
}
