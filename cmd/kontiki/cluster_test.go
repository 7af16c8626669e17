package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// TestMain keeps what Kubernetes' libraries log out of the tests' output, as
// the server command does.
func TestMain(m *testing.M) {
	log := hclog.NewNullLogger()
	if level := os.Getenv(logVariable); level != "" {
		log = hclog.New(&hclog.LoggerOptions{Level: hclog.LevelFromString(level)})
	}
	bridgeLibraries(log)
	os.Exit(m.Run())
}

// logVariable names the environment variable that has the nodes' logs shown at
// a level, and at once, whether a test fails or not.
const logVariable = "KONTIKI_TEST_LOG"

// testCluster is full servers in one process, the ones that production runs, on
// ports of loopback that the kernel picks. Its methods are for the test's
// goroutine.
type testCluster struct {
	t     testing.TB
	dir   string
	logs  *testLogs
	nodes []*testNode
	tune  func(i int, cfg *Config)
}

// testNode is a node and what stays of it when it is down.
type testNode struct {
	*Server // nil when down
	cfg     Config
}

// newCluster starts n nodes that found a cluster together and waits until all
// are ready. Tune, which may be nil, changes a node's settings at each start.
func newCluster(t testing.TB, n int, tune func(i int, cfg *Config)) *testCluster {
	t.Helper()
	c := &testCluster{t: t, dir: t.TempDir(), logs: &testLogs{t: t}, tune: tune}
	t.Cleanup(c.close)
	for i := range n {
		c.nodes = append(c.nodes, &testNode{cfg: c.config(i, n)})
		c.start(i)
	}
	c.waitReady()
	return c
}

func (c *testCluster) config(i, expect int) Config {
	cfg := DefaultConfig()
	cfg.Name = fmt.Sprintf("n%d", i)
	cfg.DataDir = filepath.Join(c.dir, cfg.Name)
	cfg.PKIDir = filepath.Join(c.dir, "pki")
	cfg.APIAddr, cfg.PeerAddr, cfg.GossipAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	if expect > 1 {
		cfg.BootstrapExpect = expect
	}
	cfg.Tuning = clustertest.Tuning()
	return cfg
}

// start starts node i, again on the addresses that it had.
func (c *testCluster) start(i int) {
	c.t.Helper()
	n := c.nodes[i]
	n.cfg.Peers = nil
	for _, other := range c.nodes {
		if other != n && other.cfg.GossipAddr != "127.0.0.1:0" {
			n.cfg.Peers = append(n.cfg.Peers, other.cfg.GossipAddr)
		}
	}
	cfg := n.cfg
	if c.tune != nil {
		c.tune(i, &cfg)
	}
	// Another test may have been given a port of ours while this node was down.
	until(c.t, func() (err error) {
		n.Server, err = Start(c.t.Context(), cfg, c.logs.logger(cfg.Name))
		return err
	})
	n.cfg.APIAddr = n.URL[len("https://"):]
	n.cfg.PeerAddr, n.cfg.GossipAddr = n.Node.PeerAddr(), n.Node.GossipAddr()
}

// crash ends node i without a word to anybody.
func (c *testCluster) crash(i int) {
	c.t.Helper()
	if err := c.nodes[i].Abort(); err != nil {
		c.t.Errorf("node %d does not stop cleanly: %v", i, err)
	}
	c.nodes[i].Server = nil
}

// leaveAlone crashes all nodes but one, the leader last: two that are left elect another at once.
func (c *testCluster) leaveAlone(left int) {
	c.t.Helper()
	for _, i := range append(c.followers(), c.leader()) {
		if i != left {
			c.crash(i)
		}
	}
}

// stop ends node i in good order.
func (c *testCluster) stop(i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), stopTimeout)
	defer cancel()
	if err := c.nodes[i].Stop(ctx); err != nil {
		c.t.Errorf("node %d does not stop cleanly: %v", i, err)
	}
	c.nodes[i].Server = nil
}

// close ends what is still up.
func (c *testCluster) close() {
	var stopping sync.WaitGroup
	for _, i := range c.up() {
		stopping.Go(func() { c.nodes[i].Abort() })
	}
	stopping.Wait()
	c.logs.end()
}

// up returns the numbers of the nodes that run.
func (c *testCluster) up() (up []int) {
	for i, n := range c.nodes {
		if n.Server != nil {
			up = append(up, i)
		}
	}
	return up
}

// leader waits until one node leads and all others know it, and returns its
// number.
func (c *testCluster) leader() (leader int) {
	c.t.Helper()
	until(c.t, func() error {
		leader = -1
		for _, i := range c.up() {
			if c.nodes[i].Node.Status().Presiding {
				leader = i
			}
		}
		if leader < 0 {
			return errors.New("no node leads")
		}
		for _, i := range c.up() {
			if name, _, _ := c.nodes[i].Node.Leader(); name != c.nodes[leader].cfg.Name {
				return fmt.Errorf("node %d takes %q for the leader, it is node %d", i, name, leader)
			}
		}
		return nil
	})
	return leader
}

// followers returns the nodes that run and do not lead.
func (c *testCluster) followers() (followers []int) {
	c.t.Helper()
	leader := c.leader()
	for _, i := range c.up() {
		if i != leader {
			followers = append(followers, i)
		}
	}
	return followers
}

// waitReady waits until every node that runs says so of itself.
func (c *testCluster) waitReady() {
	c.t.Helper()
	for _, i := range c.up() {
		until(c.t, func() error {
			answer := c.http(i).get("/readyz?verbose")
			if answer.code != 200 {
				return fmt.Errorf("node %d is not ready: %s", i, answer.body)
			}
			return nil
		})
	}
}

// checkEqual is the invariant at the end of each test: nodes at one index have
// one state. It waits until they all have come to the same index.
func (c *testCluster) checkEqual() {
	c.t.Helper()
	until(c.t, func() error {
		nodes := c.up()
		first := c.nodes[nodes[0]].State.View()
		for _, i := range nodes[1:] {
			view := c.nodes[i].State.View()
			if view.Index() != first.Index() {
				return fmt.Errorf("node %d is at %d, node %d at %d", nodes[0], first.Index(), i, view.Index())
			}
			if view.Digest() != first.Digest() {
				c.t.Fatalf("nodes %d and %d have different states at index %d", nodes[0], i, view.Index())
			}
		}
		return nil
	})
}

// clientConfig is the administrator's access to node i, without a rate limit.
func (c *testCluster) clientConfig(i int) *rest.Config {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.nodes[i].cfg.DataDir, "admin.kubeconfig"))
	if err != nil {
		c.t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// patience is how long a test waits for what should take milliseconds.
var patience = clustertest.Patience

// until waits until check returns nil, and says on failure what it waited for.
func until(t testing.TB, check func() error) {
	t.Helper()
	clustertest.Until(t, check)
}

// slow is what a duration becomes where KONTIKI_TEST_SLOW is set.
func slow(d time.Duration) time.Duration {
	return d * (patience / (20 * time.Second))
}

// testTuning changes the raft settings of every node.
func testTuning(change func(*cluster.Tuning)) func(int, *Config) {
	return func(_ int, cfg *Config) { change(&cfg.Tuning) }
}

// testLogs keeps what the nodes log and shows it if the test fails. After the
// test it takes nothing: a late line must not panic in t.Log.
type testLogs struct {
	t testing.TB

	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
	ended  bool         // guarded by mu
}

func (l *testLogs) logger(name string) hclog.Logger {
	opts := &hclog.LoggerOptions{Name: name, Level: hclog.Info, Output: l, TimeFormat: "15:04:05.000"}
	if level := os.Getenv(logVariable); level != "" {
		opts.Level, opts.Output = hclog.LevelFromString(level), os.Stderr
	}
	return hclog.New(opts)
}

// Write implements io.Writer.
func (l *testLogs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.buffer.Write(p)
}

func (l *testLogs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.t.Failed() {
		l.t.Logf("the nodes' logs:\n%s", l.buffer.String())
	}
}
