package cluster_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/cluster/pki"
	"kontiki/fsm"
)

// tiny makes raft take snapshots all the time and forget its log.
func tiny(_ int, cfg *cluster.Config) {
	cfg.SnapshotThreshold, cfg.SnapshotInterval, cfg.TrailingLogs = 16, 10*time.Millisecond, 4
}

func TestLateJoinBecomesVoter(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	for i := range 50 {
		mustPropose(t, c.Node(i%3), create(fmt.Sprint("/", i), ""))
	}
	late := c.Add()
	c.WaitVoters(late, 4)
	mustPropose(t, c.Node(late), create("/late", ""))
	c.WaitEqual()
	for _, m := range c.Node(late).Members() {
		if m.APIAddr != m.Name+".example:6443" || m.PeerAddr == "" || !m.Alive || m.Version != "test" {
			t.Errorf("incomplete member: %+v", m)
		}
	}
}

func TestNonVoterStaysOne(t *testing.T) {
	c := clustertest.New(t, 1, func(i int, cfg *cluster.Config) { cfg.NonVoter = i > 0 })
	late := c.Add()
	mustPropose(t, c.Node(late), create("/a", ""))
	if err := c.Node(late).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c.WaitVoters(late, 1)
}

// TestMovedNode: a node comes back on another peer port, and the leader notes it.
func TestMovedNode(t *testing.T) {
	move := false
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
		if move {
			cfg.PeerAddr = "127.0.0.1:0"
		}
	})
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	follower := c.Follower()
	old := c.Node(follower).PeerAddr()
	c.Crash(follower)
	move = true
	c.Start(follower)
	if c.Node(follower).PeerAddr() == old {
		t.Skip("the kernel gave the same port again")
	}
	if err := c.Node(follower).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	mustPropose(t, c.Node(follower), create("/moved", ""))
}

func TestRestartWithSnapshot(t *testing.T) {
	c := clustertest.New(t, 3, tiny)
	for i := range 100 {
		mustPropose(t, c.Node(i%3), create(fmt.Sprint("/", i), "v"))
	}
	for i := range 3 {
		waitSnapshot(t, c, i)
	}
	digest := c.FSM(0).View().Digest()
	for i := range 3 {
		c.Crash(i)
	}
	for i := range 3 {
		c.Start(i)
	}
	for i := range 3 {
		if err := c.Node(i).Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	c.WaitEqual()
	view := c.FSM(0).View()
	if view.Len() != 100 {
		t.Errorf("%d of 100 entries are there after a restart; digest was %x", view.Len(), digest)
	}
}

func waitSnapshot(t *testing.T, c *clustertest.Cluster, i int) {
	t.Helper()
	clustertest.Until(t, func() error {
		found, _ := filepath.Glob(filepath.Join(c.Member(i).Dir, "raft", "snapshots", "*-*"))
		if len(found) == 0 {
			return fmt.Errorf("node %d has no snapshot", i)
		}
		return nil
	})
}

// TestInstallSnapshot: a node that was away until the log it needs is gone gets a snapshot.
func TestInstallSnapshot(t *testing.T) {
	c := clustertest.New(t, 3, tiny)
	c.WaitVoters(c.WaitLeader(), 3)
	for round := range 3 {
		follower := c.Follower()
		c.Crash(follower)
		for i := range 100 {
			mustPropose(t, c.Node(c.Up()[i%2]), create(fmt.Sprintf("/%d/%d", round, i), "v"))
		}
		waitSnapshot(t, c, c.WaitLeader())
		c.Start(follower)
		if err := c.Node(follower).Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
		mustPropose(t, c.Node(follower), create(fmt.Sprintf("/%d/back", round), "v"))
		c.WaitEqual()
	}
}

func TestWipedVoterIsRefused(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/a", ""))
	follower := c.Follower()
	c.Crash(follower)
	wipe(t, c, follower)
	c.Start(follower)
	waitFatal(t, c.Node(follower), cluster.ErrWipedVoter)
	// It has taken no part.
	if s := c.Node(follower).Status(); s.LastIndex != 0 || s.Term != 0 {
		t.Errorf("the refused node has a log: %+v", s)
	}
	mustPropose(t, c.Node(c.WaitLeaderBut(follower)), create("/b", ""))
}

// TestReplaceNode: a node whose disk is gone is removed, and its machine joins under a new name.
func TestReplaceNode(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/before", ""))
	c.WaitEqual() // a node that has nothing yet may be removed while it runs
	dead := c.Follower()
	name := c.Member(dead).Name
	if _, err := c.Node(c.WaitLeader()).Remove(testContext(t), name); !errors.Is(err, cluster.ErrStillAlive) {
		t.Errorf("removing a running node: %v", err)
	}
	c.Crash(dead)
	through := c.Follower()
	clustertest.Until(t, func() error {
		_, err := c.Node(through).Remove(testContext(t), name)
		return err
	})
	c.WaitVoters(through, 2)
	if _, err := c.Node(through).Remove(testContext(t), name); !errors.Is(err, cluster.ErrUnknownNode) {
		t.Errorf("removing it again: %v", err)
	}
	c.WaitVoters(c.Add(), 3)
	mustPropose(t, c.Node(through), create("/a", ""))
	c.WaitEqual()
}

// TestSameNameAgain: a node whose disk is gone is removed, and comes back as a new one under
// its old name.
func TestSameNameAgain(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/a", ""))
	dead := c.Follower()
	c.Crash(dead)
	wipe(t, c, dead)
	through := c.Follower()
	clustertest.Until(t, func() error {
		_, err := c.Node(through).Remove(testContext(t), c.Member(dead).Name)
		return err
	})
	for _, i := range c.Up() { // one that lags would still count it
		c.WaitVoters(i, 2)
	}
	c.Start(dead)
	c.WaitVoters(through, 3)
	mustPropose(t, c.Node(dead), create("/b", ""))
	c.WaitEqual()
}

// TestNoSecondCluster: two of three lose their data and start with the same command line.
func TestNoSecondCluster(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/a", ""))
	for _, i := range []int{1, 2} {
		c.Crash(i)
		wipe(t, c, i)
	}
	c.Start(1)
	c.Start(2)
	waitFatal(t, c.Node(1), cluster.ErrWipedVoter)
	waitFatal(t, c.Node(2), cluster.ErrWipedVoter)
}

func wipe(t *testing.T, c *clustertest.Cluster, i int) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(filepath.Join(c.Member(i).Dir, "raft")), os.Remove(filepath.Join(c.Member(i).Dir, "node.json"))); err != nil {
		t.Fatal(err)
	}
}

func waitFatal(t *testing.T, node *cluster.Node, want error) {
	t.Helper()
	select {
	case err := <-node.Fatal():
		if !errors.Is(err, want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("fatal: %v, want one line about %v", err, want)
		}
	case <-time.After(clustertest.Patience):
		t.Fatalf("the node goes on, want %v", want)
	}
}

// TestBootstrapAfterCrash: founders that crash in the middle found the same cluster later.
func TestBootstrapAfterCrash(t *testing.T) {
	c := clustertest.NewEmpty(t, 3)
	c.Add()
	c.Add()
	c.Restart(0)
	c.Restart(1)
	if leader := c.Leader(); leader >= 0 {
		t.Fatalf("node %d leads with two of three there", leader)
	}
	c.Add()
	mustPropose(t, c.Node(c.WaitLeader()), create("/a", ""))
	c.WaitEqual()
}

func TestForeignCertificates(t *testing.T) {
	c := clustertest.New(t, 1)
	foreign, err := pki.EnsureCluster(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	pair := func(p pki.Pair, err error) tls.Certificate {
		cert, err2 := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return cert
	}
	for _, test := range []struct {
		name string
		cert tls.Certificate
		ok   bool
	}{
		{"a node of this cluster", pair(c.Root().IssueNode("n9", nil)), true},
		{"a node of another cluster", pair(foreign.IssueNode("n9", nil)), false},
		{"an administrator", pair(c.Root().IssueClient("admin", []string{"system:masters"}, time.Hour)), false},
		{"this node's own name", pair(c.Root().IssueNode("n0", nil)), false},
	} {
		conn, err := tls.Dial("tcp", c.Node(0).PeerAddr(), &tls.Config{
			Certificates: []tls.Certificate{test.cert}, InsecureSkipVerify: true, NextProtos: []string{"kontiki-peer/2"},
		})
		if err == nil {
			// The server's refusal arrives with the first read; a welcome peer hears nothing.
			conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		var timeout net.Error
		if welcome := errors.As(err, &timeout) && timeout.Timeout(); welcome != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestStartErrors: each is one line, and of its kind.
func TestStartErrors(t *testing.T) {
	c := clustertest.New(t, 1)
	mustPropose(t, c.Node(0), create("/a", ""))
	other := c.Config(0)
	check := func(name string, cfg cluster.Config, want error) {
		t.Helper()
		node, err := cluster.Open(cfg, fsm.New())
		if err == nil {
			node.Abort()
		}
		if !errors.Is(err, want) || err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line about %v", name, err, want)
		}
	}
	check("the data directory is in use", other, cluster.ErrInUse)

	fresh := other
	fresh.DataDir = t.TempDir()
	check("the peer port is in use", fresh, cluster.ErrListen)
	fresh.PeerAddr = "127.0.0.1:0"
	check("the gossip port is in use", fresh, cluster.ErrListen)
	fresh.PeerAddr, fresh.GossipAddr = "192.0.2.1:1", "127.0.0.1:0"
	check("an address of another machine", fresh, cluster.ErrListen)
	fresh.PeerAddr = "nonsense"
	check("no address", fresh, cluster.ErrConfig)
	fresh.PeerAddr = "0.0.0.0:0"
	check("nothing to advertise", fresh, cluster.ErrConfig)

	c.Close(0)
	foreign, err := pki.EnsureCluster(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	stranger := other
	if stranger.Identity, err = pki.NodeIdentity(foreign, t.TempDir(), "n0", nil); err != nil {
		t.Fatal(err)
	}
	check("data of another cluster", stranger, cluster.ErrForeignData)
	renamed := other
	renamed.Name = "n7"
	if renamed.Identity, err = pki.NodeIdentity(c.Root(), t.TempDir(), "n7", nil); err != nil {
		t.Fatal(err)
	}
	check("data of another node", renamed, cluster.ErrForeignData)

	db := filepath.Join(other.DataDir, "raft", "raft.db")
	if err := os.WriteFile(db, []byte("this is no log"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("garbage for a log", other, cluster.ErrCorrupt)
}
