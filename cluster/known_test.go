package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// TestRememberedPeers: nodes that are told no address find each other again, also when the
// one that they were first told of is gone.
func TestRememberedPeers(t *testing.T) {
	told := true
	c := clustertest.New(t, 3, func(_ int, cfg *cluster.Config) {
		if !told {
			cfg.Join = nil
		}
	})
	c.WaitVoters(c.WaitLeader(), 3)
	waitKnown(t, c, 0, 1, 2)
	for i := range 3 {
		c.Crash(i)
	}
	told = false
	c.Start(1)
	c.Start(2)
	mustPropose(t, c.Node(c.WaitLeader()), create("/a", ""))
}

// waitKnown waits until each of these nodes remembers where the others of them are.
func waitKnown(t *testing.T, c *clustertest.Cluster, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		clustertest.Until(t, func() error {
			known, err := cluster.KnownPeers(c.Member(i).Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range nodes {
				if other != i && !slices.Contains(known, c.Node(other).GossipAddr()) {
					return fmt.Errorf("node %d remembers %v, not node %d", i, known, other)
				}
			}
			return nil
		})
	}
}

// TestKnowingNodeFoundsNothing: a node that has been told of others and has no data does
// not found a cluster of its own, whatever its flags say.
func TestKnowingNodeFoundsNothing(t *testing.T) {
	for _, expect := range []int{0, 1} {
		c := clustertest.NewEmpty(t, 1, func(_ int, cfg *cluster.Config) {
			cfg.BootstrapExpect = expect
			if err := cluster.RememberPeers(cfg.DataDir, []string{"127.0.0.1:1"}); err != nil {
				t.Fatal(err)
			}
		})
		c.Add()
		if s := c.Node(0).Status(); s.LastIndex != 0 {
			t.Errorf("with bootstrap-expect %d it has founded a cluster: %+v", expect, s)
		}
	}
}

func TestDamagedKnownPeers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "peers.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.KnownPeers(dir); err == nil || !strings.Contains(err.Error(), "remove it and give --peers") {
		t.Errorf("it says %v", err)
	}
}
