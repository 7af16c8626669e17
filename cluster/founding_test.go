package cluster_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// oneFounding waits until these nodes have one id, and returns it.
func oneFounding(t *testing.T, c *clustertest.Cluster, nodes ...int) (id string) {
	t.Helper()
	clustertest.Until(t, func() error {
		id = c.Node(nodes[0]).Founding()
		for _, i := range nodes {
			if got := c.Node(i).Founding(); got == "" || got != id {
				return fmt.Errorf("node %d has founding %q, node %d has %q", i, got, nodes[0], id)
			}
		}
		return nil
	})
	return id
}

// TestFoundingsKeepApart: a node that was started alone under the same CA founds a cluster of
// its own. The two then hear of each other in gossip, and mix neither members nor data.
func TestFoundingsKeepApart(t *testing.T) {
	c := clustertest.New(t, 1, func(i int, cfg *cluster.Config) {
		if i == 1 {
			cfg.Join = nil
		}
	})
	mustPropose(t, c.Node(0), create("/zero", ""))
	c.Add()
	mustPropose(t, c.Node(1), create("/one", ""))
	c.Restart(0) // it joins node 1's gossip, on its old data
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		from, to := c.Node(pair[0]), c.Node(pair[1])
		if from.Founding() == to.Founding() {
			t.Fatal("both foundings have one id")
		}
		err := from.Ask(testContext(t), c.Member(pair[1]).Name, to.PeerAddr())
		if !errors.Is(err, cluster.ErrOtherFounding) {
			t.Errorf("node %d asks node %d: %v", pair[0], pair[1], err)
		}
	}
	clustertest.Until(t, func() error {
		for i := range 2 {
			if members := c.Node(i).Members(); len(members) != 1 {
				t.Fatalf("node %d counts node %d as a member: %+v", i, 1-i, members)
			}
			if !slices.Contains(c.Node(i).Strangers(), c.Member(1-i).Name) {
				return fmt.Errorf("node %d has not heard of node %d", i, 1-i)
			}
		}
		return nil
	})
	for i := range 2 {
		mustPropose(t, c.Node(i), create(fmt.Sprint("/later/", i), ""))
		if n := c.FSM(i).View().Len(); n != 2 {
			t.Errorf("node %d has %d entries, 2 were written to its cluster", i, n)
		}
	}
}

// TestSecondFounding: nodes whose disks were wiped found a cluster while the one with the data
// is away. It comes back, and is not mixed in; wiped too, it enters.
func TestSecondFounding(t *testing.T) {
	c := clustertest.New(t, 3)
	first := oneFounding(t, c, 0, 1, 2)
	mustPropose(t, c.Node(0), create("/a", ""))
	c.WaitEqual()
	for i := range 3 {
		c.Crash(i)
	}
	wipe(t, c, 0)
	wipe(t, c, 1)
	c.Start(0)
	c.Start(1)
	c.Add() // the third that the founding waits for
	second := oneFounding(t, c, 0, 1, 3)
	if second == first {
		t.Fatal("two foundings have one id")
	}
	mustPropose(t, c.Node(0), create("/b", ""))
	c.Start(2)
	for _, pair := range [][2]int{{2, 0}, {0, 2}} {
		err := c.Node(pair[0]).Ask(testContext(t), c.Member(pair[1]).Name, c.Node(pair[1]).PeerAddr())
		if !errors.Is(err, cluster.ErrOtherFounding) {
			t.Errorf("node %d asks node %d: %v", pair[0], pair[1], err)
		}
	}
	if s := c.Node(2).Status(); c.Node(2).Founding() != first || s.Leader != "" || s.LastIndex == 0 {
		t.Errorf("the old node has founding %s: %+v", c.Node(2).Founding(), s)
	}
	c.Crash(2)
	wipe(t, c, 2)
	c.Start(2)
	c.WaitVoters(2, 4)
	oneFounding(t, c, 0, 1, 2, 3)
	c.WaitEqual()
}

// TestOldData: data directories of before the id get one without having to agree on it, and a
// program of that time may still connect.
func TestOldData(t *testing.T) {
	c := clustertest.New(t, 3)
	oneFounding(t, c, 0, 1, 2)
	mustPropose(t, c.Node(0), create("/a", ""))
	if err := dialOld(t, c); err == nil {
		t.Error("a node that says no founding is welcome in a cluster with one")
	}
	for i := range 3 {
		c.Crash(i)
		editNodeFile(t, c.Member(i).Dir, func(contents map[string]any) {
			for key := range contents {
				if key != "cluster" && key != "name" {
					delete(contents, key)
				}
			}
			contents["founders"] = []map[string]string{{"name": "n0", "addr": "x:1"}}
		})
	}
	for i := range 3 {
		c.Start(i)
	}
	c.WaitLeader()
	if id := oneFounding(t, c, 0, 1, 2); id != c.Node(0).FirstFounding() {
		t.Errorf("founding %s, want %s", id, c.Node(0).FirstFounding())
	}
	mustPropose(t, c.Node(1), create("/b", ""))
	if err := dialOld(t, c); err != nil {
		t.Errorf("a node of before the id is refused: %v", err)
	}
	c.WaitVoters(c.Add(), 4)
	oneFounding(t, c, 0, 3)
}

func dialOld(t *testing.T, c *clustertest.Cluster) error {
	t.Helper()
	pair, err := c.Root().IssueNode("n9", nil)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", c.Node(0).PeerAddr(), &tls.Config{
		Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, NextProtos: []string{"kontiki-raft/1", "kontiki-peer/1"},
	})
	if err != nil {
		return err
	}
	return conn.Close()
}

// TestLostLog: node.json alone remembers that the node was a member.
func TestLostLog(t *testing.T) {
	loseLog := func(c *clustertest.Cluster, i int) {
		oneFounding(t, c, i)
		c.Crash(i)
		if err := os.RemoveAll(filepath.Join(c.Member(i).Dir, "raft")); err != nil {
			t.Fatal(err)
		}
	}
	three := clustertest.New(t, 3)
	three.WaitVoters(three.WaitLeader(), 3)
	lost := three.Follower()
	loseLog(three, lost)
	three.Start(lost)
	waitFatal(t, three.Node(lost), cluster.ErrWipedVoter)

	alone := clustertest.New(t, 1)
	loseLog(alone, 0)
	node, err := cluster.Open(alone.Config(0), fsm.New())
	if !errors.Is(err, cluster.ErrLostLog) {
		t.Errorf("a node that lost its log starts alone: %v", err)
	}
	if err == nil {
		node.Abort()
	}
}
