package cluster_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// TestStuckTransfer provokes hashicorp/raft#696: two transfers to a voter whose disk hangs,
// then a step-down, and the leader refuses everything when it leads again. Its process must
// end. When raft is fixed, this test fails, and the watchdog can go.
func TestStuckTransfer(t *testing.T) {
	var hung atomic.Int64
	hung.Store(-1)
	release := make(chan struct{})
	defer close(release)
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
		cfg.Faults = func(string) error {
			if hung.Load() == int64(i) {
				<-release
			}
			return nil
		}
	})
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	mustPropose(t, c.Node(leader), create("/a", ""))
	c.WaitEqual()
	slow := c.Follower()
	other := 3 - leader - slow
	ctx := testContext(t)
	hung.Store(int64(slow))
	mustPropose(t, c.Node(leader), create("/b", "")) // the slow one does not acknowledge it
	for range 2 {
		if _, err := c.Node(leader).TransferLeadership(ctx, c.Member(slow).Name); !errors.Is(err, cluster.ErrNotTransferred) {
			t.Fatalf("a transfer to a node whose disk hangs: %v", err)
		}
	}
	elect(t, c, other, leader, func(s cluster.Status) bool { return s.Presiding })
	elect(t, c, leader, other, func(s cluster.Status) bool { return s.State == "Leader" })
	waitFatal(t, c.Node(leader), cluster.ErrStuckTransfer)
}

// elect has node i stand, once it has all that voter has, until it leads. It is asked while it
// follows only: a leader that does not preside yet would begin anew.
func elect(t *testing.T, c *clustertest.Cluster, i, voter int, leads func(cluster.Status) bool) {
	t.Helper()
	clustertest.Until(t, func() error {
		s := c.Node(i).Status()
		if leads(s) {
			return nil
		}
		if s.State == "Follower" && s.LastIndex == c.Node(voter).Status().LastIndex {
			c.Node(i).ForceElection()
		}
		return fmt.Errorf("node %d does not lead: %+v", i, s)
	})
}
