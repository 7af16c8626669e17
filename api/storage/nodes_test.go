package storage_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kontiki/api/storage"
	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/cluster/pki"
	"kontiki/fsm"
	"kontiki/watch"
)

// node is a real one: raft on loopback TCP, its log on disk.
type node struct {
	cluster *cluster.Node
	machine *fsm.FSM
	hub     *watch.Hub
	history *history
}

func (n *node) backend() storage.Backend {
	return storage.Backend{Proposer: n.cluster, State: n.machine, Feed: n.hub}
}

// startNodes starts n nodes that found a cluster. The first of them returned
// leads, the others follow. They stop with the test.
func startNodes(t testing.TB, n int) []*node {
	t.Helper()
	dir := t.TempDir()
	root, err := pki.EnsureCluster(filepath.Join(dir, "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node
	var join []string
	for i := range n {
		cfg := cluster.DefaultConfig()
		cfg.Name, cfg.GossipKey, cfg.Tuning = fmt.Sprintf("n%d", i), root.GossipKey, steadyTuning()
		cfg.DataDir = filepath.Join(dir, cfg.Name)
		cfg.PeerAddr, cfg.GossipAddr, cfg.Join = "127.0.0.1:0", "127.0.0.1:0", join
		if cfg.Identity, err = pki.NodeIdentity(root, filepath.Join(cfg.DataDir, "pki"), cfg.Name, nil); err != nil {
			t.Fatal(err)
		}
		if n > 1 {
			cfg.BootstrapExpect = n
		}
		started := startNode(t, cfg)
		join = append(join, started.cluster.GossipAddr())
		nodes = append(nodes, started)
	}
	return leaderFirst(t, nodes)
}

// steadyTuning is that of tests, with a leader that is not lost for a moment of
// load: what upstream's tests compute as "the next version" holds in one term.
func steadyTuning() cluster.Tuning {
	tuning := clustertest.Tuning()
	tuning.HeartbeatTimeout, tuning.ElectionTimeout, tuning.LeaseTimeout = time.Second, time.Second, time.Second
	return tuning
}

func startNode(t testing.TB, cfg cluster.Config) *node {
	t.Helper()
	n := &node{hub: watch.NewHub(watch.Config{}), history: &history{}}
	n.machine = fsm.New(n.hub, n.history)
	var err error
	if n.cluster, err = cluster.Open(cfg, n.machine); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.cluster.Abort() })
	return n
}

// leaderFirst waits for a leader and until all nodes have what it has.
func leaderFirst(t testing.TB, nodes []*node) []*node {
	t.Helper()
	clustertest.Until(t, func() error {
		for i, n := range nodes {
			if n.cluster.Status().Presiding {
				nodes[0], nodes[i] = nodes[i], nodes[0]
				return nil
			}
		}
		return errors.New("no node leads")
	})
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	for i, n := range nodes {
		if err := n.cluster.Ready(ctx); err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
	}
	return nodes
}
