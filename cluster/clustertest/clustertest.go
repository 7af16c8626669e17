package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster"
	"kontiki/cluster/pki"
	"kontiki/fsm"
)

// Patience is how long Until waits for what should take milliseconds.
var Patience = 20 * time.Second * time.Duration(slow())

func slow() int {
	if n, err := strconv.Atoi(os.Getenv("KONTIKI_TEST_SLOW")); err == nil && n > 0 {
		return n
	}
	return 1
}

// Option changes the configuration of node i.
type Option func(i int, cfg *cluster.Config)

// Cluster is nodes of one cluster. Its methods are for the test's goroutine.
type Cluster struct {
	t       testing.TB
	logs    *logs
	root    *pki.Cluster
	dir     string
	expect  int
	options []Option
	members []*Member
}

// Member is one node and what stays when it is down.
type Member struct {
	Name string
	Node *cluster.Node // nil when down
	FSM  *fsm.FSM
	Dir  string

	cfg cluster.Config
}

// New starts n nodes that found a cluster together, and waits until one of them leads.
func New(t testing.TB, n int, options ...Option) *Cluster {
	t.Helper()
	c := NewEmpty(t, n, options...)
	for range n {
		c.Add()
	}
	c.WaitLeader()
	return c
}

// NewEmpty starts no node; of those that are added, the first expect found a cluster.
func NewEmpty(t testing.TB, expect int, options ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, logs: newLogs(t), dir: t.TempDir(), expect: expect, options: options}
	root, err := pki.EnsureCluster(filepath.Join(c.dir, "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	c.root = root
	t.Cleanup(c.stop)
	return c
}

// Add starts one more node and returns its number.
func (c *Cluster) Add() int {
	c.t.Helper()
	i := len(c.members)
	c.members = append(c.members, &Member{Name: fmt.Sprintf("n%d", i), Dir: filepath.Join(c.dir, fmt.Sprintf("n%d", i))})
	c.Start(i)
	return i
}

// Config is the configuration that node i starts with.
func (c *Cluster) Config(i int) cluster.Config {
	m := c.members[i]
	if m.cfg.Name == "" {
		m.cfg = c.newConfig(m)
	}
	m.cfg.Join = nil
	for _, other := range c.members {
		if other != m && other.cfg.Name != "" {
			m.cfg.Join = append(m.cfg.Join, other.cfg.GossipAddr)
		}
	}
	cfg := m.cfg
	for _, option := range c.options {
		option(i, &cfg)
	}
	return cfg
}

func (c *Cluster) newConfig(m *Member) cluster.Config {
	identity, err := pki.NodeIdentity(c.root, filepath.Join(m.Dir, "pki"), m.Name, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	cfg := cluster.DefaultConfig()
	cfg.Name, cfg.DataDir = m.Name, m.Dir
	cfg.PeerAddr, cfg.GossipAddr = "127.0.0.1:0", "127.0.0.1:0"
	cfg.APIAddr, cfg.Version = m.Name+".example:6443", "test"
	cfg.Identity, cfg.GossipKey = identity, c.root.GossipKey
	cfg.Logger = c.logs.logger(m.Name)
	if c.expect > 1 {
		cfg.BootstrapExpect = c.expect
	}
	cfg.Tuning = Tuning()
	return cfg
}

// Tuning is DefaultConfig's with timeouts for tests.
func Tuning() cluster.Tuning {
	ms := func(n int) time.Duration { return time.Duration(n*slow()) * time.Millisecond }
	tuning := cluster.DefaultConfig().Tuning
	tuning.HeartbeatTimeout, tuning.ElectionTimeout, tuning.LeaseTimeout = ms(300), ms(300), ms(300)
	tuning.StartTimeout = ms(200)
	tuning.VerifyTimeout, tuning.DialTimeout = ms(1000), ms(500)
	tuning.EnqueueTimeout = ms(2000)
	tuning.ReconcileInterval, tuning.StableFor = ms(500), ms(100)
	tuning.GossipInterval, tuning.ProbeInterval, tuning.ProbeTimeout = ms(20), ms(200), ms(100)
	return tuning
}

// Start starts node i, again on the addresses that it had.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	if err := c.TryStart(i); err != nil {
		c.t.Fatalf("node %d does not start: %v", i, err)
	}
}

// TryStart is Start for a node that may refuse.
func (c *Cluster) TryStart(i int) error {
	m := c.members[i]
	machine := fsm.New()
	node, err := cluster.Open(c.Config(i), machine)
	if err != nil {
		return err
	}
	m.Node, m.FSM = node, machine
	m.cfg.PeerAddr, m.cfg.GossipAddr = node.PeerAddr(), node.GossipAddr()
	return nil
}

// Crash stops node i with no word to anybody.
func (c *Cluster) Crash(i int) {
	c.t.Helper()
	if err := c.members[i].Node.Abort(); err != nil {
		c.t.Errorf("node %d: %v", i, err)
	}
	c.members[i].Node = nil
}

// Close stops node i in good order.
func (c *Cluster) Close(i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := c.members[i].Node.Close(ctx); err != nil {
		c.t.Errorf("node %d: %v", i, err)
	}
	c.members[i].Node = nil
}

// Restart crashes node i and starts it again.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.Crash(i)
	c.Start(i)
}

func (c *Cluster) stop() {
	for _, i := range c.Up() {
		c.members[i].Node.Abort()
	}
	c.logs.end()
}

// Node returns node i, FSM its state machine.
func (c *Cluster) Node(i int) *cluster.Node { return c.members[i].Node }

// FSM returns the state machine of node i; a restart makes a new one.
func (c *Cluster) FSM(i int) *fsm.FSM { return c.members[i].FSM }

// Member returns node i with its name and directory.
func (c *Cluster) Member(i int) *Member { return c.members[i] }

// Members returns all nodes, also those that are down.
func (c *Cluster) Members() []*Member { return c.members }

// Root is the cluster's certificate authority.
func (c *Cluster) Root() *pki.Cluster { return c.root }

// Logger is where node i logs to.
func (c *Cluster) Logger(name string) hclog.Logger { return c.logs.logger(name) }

// Up returns the numbers of the nodes that run.
func (c *Cluster) Up() (up []int) {
	for i, m := range c.members {
		if m.Node != nil {
			up = append(up, i)
		}
	}
	return up
}

// Leader returns the node that leads and is ready to, or -1.
func (c *Cluster) Leader() int {
	best, term := -1, uint64(0)
	for _, i := range c.Up() {
		if s := c.members[i].Node.Status(); s.Presiding && s.Term > term {
			best, term = i, s.Term
		}
	}
	return best
}

// Follower returns some node that runs and does not lead.
func (c *Cluster) Follower() int {
	c.t.Helper()
	leader := c.WaitLeader()
	for _, i := range c.Up() {
		if i != leader {
			return i
		}
	}
	c.t.Fatal("there is no follower")
	return -1
}

// WaitLeader waits until one node leads and all that run know it.
func (c *Cluster) WaitLeader() (leader int) {
	c.t.Helper()
	Until(c.t, func() error {
		leader = c.Leader()
		if leader < 0 {
			return errors.New("no node leads")
		}
		for _, i := range c.Up() {
			if name, _, _ := c.members[i].Node.Leader(); name != c.members[leader].Name {
				return fmt.Errorf("node %d takes %q for the leader, it is node %d", i, name, leader)
			}
		}
		return nil
	})
	return leader
}

// WaitIndex waits until every node that runs has applied index.
func (c *Cluster) WaitIndex(index uint64) {
	c.t.Helper()
	Until(c.t, func() error {
		for _, i := range c.Up() {
			if at := c.members[i].FSM.Index(); at < index {
				return fmt.Errorf("node %d is at %d, not yet at %d", i, at, index)
			}
		}
		return nil
	})
}

// WaitEqual waits until all nodes that run are at one index, and compares their states.
func (c *Cluster) WaitEqual() {
	c.t.Helper()
	Until(c.t, func() error {
		var first *fsm.View
		for _, i := range c.Up() {
			view := c.members[i].FSM.View()
			if first == nil {
				first = view
			}
			if view.Index() != first.Index() {
				return fmt.Errorf("node %d is at %d, another at %d", i, view.Index(), first.Index())
			}
			if view.Digest() != first.Digest() {
				c.t.Fatalf("node %d has another state than others at index %d", i, view.Index())
			}
		}
		return nil
	})
}

// WaitVoters waits until the raft configuration that node i knows has n voters.
func (c *Cluster) WaitVoters(i, n int) {
	c.t.Helper()
	Until(c.t, func() error {
		voters := 0
		for _, m := range c.members[i].Node.Members() {
			if m.Role == cluster.RoleVoter {
				voters++
			}
		}
		if voters != n {
			return fmt.Errorf("node %d counts %d voters, not %d", i, voters, n)
		}
		return nil
	})
}

// Until waits until check returns nil. On failure it shows the last reason.
func Until(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", Patience, err)
		}
		<-time.After(2 * time.Millisecond) // between two looks
	}
}

// WaitLeaderBut waits until a node other than i leads.
func (c *Cluster) WaitLeaderBut(i int) (leader int) {
	c.t.Helper()
	Until(c.t, func() error {
		if leader = c.Leader(); leader < 0 || leader == i {
			return fmt.Errorf("no node other than %d leads", i)
		}
		return nil
	})
	return leader
}
