package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func create(key, value string) fsm.Command {
	return fsm.Command{Op: fsm.OpCreate, Key: key, Value: []byte(value)}
}

func mustPropose(t testing.TB, node *cluster.Node, cmd fsm.Command) fsm.Result {
	t.Helper()
	result, err := node.Propose(testContext(t), cmd)
	if err != nil {
		t.Fatalf("proposing %s: %v", cmd.Key, err)
	}
	return result
}

func TestProposeOnEveryNode(t *testing.T) {
	c := clustertest.New(t, 3)
	for i := range 3 {
		key := fmt.Sprintf("/things/%d", i)
		result := mustPropose(t, c.Node(i), create(key, "v"))
		entry, ok := c.FSM(i).View().Get(key)
		if !ok || entry.ModIndex != result.Index {
			t.Errorf("node %d does not see its own write at %d: %v", i, result.Index, entry)
		}
	}
	c.WaitEqual()
}

func TestConflictsThroughFollower(t *testing.T) {
	c := clustertest.New(t, 3)
	leader, follower := c.WaitLeader(), c.Follower()
	first := mustPropose(t, c.Node(leader), create("/a", "1"))
	update := func(expect uint64) fsm.Command {
		return fsm.Command{Op: fsm.OpUpdate, Key: "/a", Value: []byte("2"), Expect: expect}
	}
	for _, test := range []struct {
		name string
		cmd  fsm.Command
		want fsm.Code
	}{
		{"create what exists", create("/a", "2"), fsm.Exists},
		{"update what does not", fsm.Command{Op: fsm.OpUpdate, Key: "/b"}, fsm.NotFound},
		{"update at another index", update(first.Index + 100), fsm.Conflict},
		{"update at its index", update(first.Index), fsm.OK},
		{"update at its old index", update(first.Index), fsm.Conflict},
	} {
		result := mustPropose(t, c.Node(follower), test.cmd)
		if result.Code != test.want {
			t.Errorf("%s: %v, want %v", test.name, result.Code, test.want)
		}
		if test.want == fsm.Conflict && (result.Current == nil || result.Current.Key != "/a") {
			t.Errorf("%s: the winner is not in the result: %v", test.name, result.Current)
		}
		if at := c.FSM(follower).Index(); at < result.Index {
			t.Errorf("%s: answered at %d, this node is at %d", test.name, result.Index, at)
		}
	}
}

func TestTooLargeAndInvalid(t *testing.T) {
	c := clustertest.New(t, 3, func(_ int, cfg *cluster.Config) { cfg.MaxCommandBytes = 10_000 })
	for i := range 3 {
		_, err := c.Node(i).Propose(testContext(t), create("/big", string(make([]byte, 10_000))))
		if !errors.Is(err, cluster.ErrTooLarge) {
			t.Errorf("node %d: %v, want %v", i, err, cluster.ErrTooLarge)
		}
		if _, err = c.Node(i).Propose(testContext(t), fsm.Command{Op: 77, Key: "/a"}); !errors.Is(err, cluster.ErrInvalid) {
			t.Errorf("node %d: %v, want %v", i, err, cluster.ErrInvalid)
		}
		if result := mustPropose(t, c.Node(i), create(fmt.Sprint("/fits/", i), string(make([]byte, 9000)))); result.Code != fsm.OK {
			t.Errorf("node %d: %v", i, result)
		}
	}
}

// TestLowerLimitOfLeader: a follower that is allowed more than the leader learns it for sure.
func TestLowerLimitOfLeader(t *testing.T) {
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) { cfg.MaxCommandBytes = 10_000 * (i + 1) })
	limit := 10_000 * (c.WaitLeader() + 1)
	for i := range 3 {
		_, err := c.Node(i).Propose(testContext(t), create("/big", string(make([]byte, limit))))
		if !errors.Is(err, cluster.ErrTooLarge) && i >= c.Leader() {
			t.Errorf("node %d: %v, want %v", i, err, cluster.ErrTooLarge)
		}
	}
}

func TestNoQuorum(t *testing.T) {
	c := clustertest.New(t, 3, func(_ int, cfg *cluster.Config) { cfg.RetryFor = time.Second })
	c.WaitVoters(c.WaitLeader(), 3)
	left := c.WaitLeader()
	for i := range 3 {
		if i != left {
			c.Crash(i)
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	_, err := c.Node(left).Propose(ctx, create("/a", ""))
	if !errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("a write without a quorum: %v", err)
	}
	if _, err := c.Node(left).ReadIndex(ctx); !errors.Is(err, cluster.ErrNoLeader) && !errors.Is(err, cluster.ErrNoQuorum) {
		t.Errorf("a read without a quorum: %v", err)
	}
	if took := time.Since(start); took > clustertest.Patience/2 {
		t.Errorf("it took %s to say so", took)
	}
	// What is surely not proposed is told apart once the old leader has resigned.
	if _, err := c.Node(left).Propose(ctx, create("/b", "")); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("a write without a leader: %v", err)
	}
}

func TestClosed(t *testing.T) {
	c := clustertest.New(t, 1)
	node := c.Node(0)
	mustPropose(t, node, create("/a", ""))
	c.Close(0)
	if _, err := node.Propose(context.Background(), create("/b", "")); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("proposing on a closed node: %v", err)
	}
	if _, err := node.ReadIndex(context.Background()); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("reading on a closed node: %v", err)
	}
	if err := node.Close(context.Background()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// TestCloseHandsOver: after Close of the leader, another leads with no election timeout.
func TestCloseHandsOver(t *testing.T) {
	c := clustertest.New(t, 3, func(_ int, cfg *cluster.Config) {
		cfg.HeartbeatTimeout, cfg.ElectionTimeout = time.Minute, time.Minute
	})
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	c.Close(leader)
	mustPropose(t, c.Node(c.Up()[0]), create("/a", ""))
	mustPropose(t, c.Node(c.Up()[1]), create("/b", ""))
}
