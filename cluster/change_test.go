package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// refused checks that a change did not happen, for this reason.
func refused(t *testing.T, what string, want error) func(string, error) {
	return func(done string, err error) {
		t.Helper()
		if !errors.Is(err, want) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: %q, %v; want one line about %v", what, done, err, want)
		}
	}
}

func done(t *testing.T, what string) func(string, error) {
	return func(done string, err error) {
		t.Helper()
		if err != nil || done == "" {
			t.Errorf("%s: %q, %v", what, done, err)
		}
	}
}

// surveyed waits until node i says this of the member called name.
func surveyed(t *testing.T, c *clustertest.Cluster, i int, name string, check func(cluster.Member) bool) {
	t.Helper()
	clustertest.Until(t, func() error {
		members := c.Node(i).Survey(testContext(t))
		at := slices.IndexFunc(members, func(m cluster.Member) bool { return m.Name == name })
		if at < 0 || !check(members[at]) {
			return fmt.Errorf("node %d says %+v", i, members)
		}
		return nil
	})
}

// TestSurvey: every node tells how far each one is, and which do not answer.
func TestSurvey(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/a", ""))
	c.WaitEqual()
	index := c.FSM(0).Index()
	for i := range 3 {
		for _, m := range c.Members() {
			surveyed(t, c, i, m.Name, func(m cluster.Member) bool {
				return m.Reachable && m.Applied == index && m.Lag <= 1 && m.LastContact >= 0 && m.Leader == (m.Name == c.Member(c.Leader()).Name)
			})
		}
	}
	down := c.Follower()
	c.Crash(down)
	for _, i := range c.Up() {
		surveyed(t, c, i, c.Member(down).Name, func(m cluster.Member) bool {
			return !m.Reachable && m.Role == cluster.RoleVoter && m.LastContact == -1
		})
	}
}

// TestDemoteAndPromote: what a person says about a vote outlives leaders and restarts.
func TestDemoteAndPromote(t *testing.T) {
	c := clustertest.New(t, 4, func(_ int, cfg *cluster.Config) { cfg.BootstrapExpect = 4 })
	leader := c.WaitLeader()
	c.WaitVoters(leader, 4)
	ctx := testContext(t)
	target, through := c.Follower(), c.WaitLeader()
	for _, i := range c.Up() {
		if i != target && i != leader {
			through = i // a third node, to be forwarded from
		}
	}
	name := c.Member(target).Name
	refused(t, "demoting an unknown node", cluster.ErrUnknownNode)(c.Node(through).Demote(ctx, "n99"))
	refused(t, "demoting the leader", cluster.ErrLeads)(c.Node(through).Demote(ctx, c.Member(leader).Name))
	done(t, "demoting")(c.Node(through).Demote(ctx, name))
	done(t, "demoting again")(c.Node(through).Demote(ctx, name))
	c.WaitVoters(through, 3)
	refused(t, "transferring to a node without a vote", cluster.ErrNotVoter)(c.Node(through).TransferLeadership(ctx, name))

	c.Restart(target)
	if err := c.Node(target).Ready(ctx); err != nil {
		t.Fatal(err)
	}
	done(t, "transferring")(c.Node(target).TransferLeadership(ctx, c.Member(through).Name))
	clustertest.Until(t, func() error {
		if got := c.WaitLeader(); got != through {
			return fmt.Errorf("node %d leads", got)
		}
		return nil
	})
	// It has caught up, and the new leader has looked more than once.
	looks := time.Now().Add(5 * clustertest.Tuning().ReconcileInterval)
	clustertest.Until(t, func() error {
		for _, m := range c.Node(through).Survey(ctx) {
			if m.Name == name && (m.Role != cluster.RoleNonVoter || m.WantsVote) {
				t.Fatalf("the demoted node is back: %+v", m)
			}
		}
		if time.Now().Before(looks) {
			return errors.New("the new leader may not have looked yet")
		}
		return nil
	})
	done(t, "promoting")(c.Node(target).Promote(ctx, name))
	c.WaitVoters(through, 4)
	done(t, "promoting again")(c.Node(target).Promote(ctx, name))
	mustPropose(t, c.Node(target), create("/a", ""))
}

// TestQuorumGuard: no command takes a vote away that the others need.
func TestQuorumGuard(t *testing.T) {
	c := clustertest.New(t, 3)
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	mustPropose(t, c.Node(leader), create("/first", ""))
	c.WaitEqual() // all have data, without which a voter does not count
	ctx := testContext(t)
	dead := c.Follower()
	c.Crash(dead)
	live := c.Follower()
	refused(t, "demoting one of two live voters", cluster.ErrQuorum)(c.Node(live).Demote(ctx, c.Member(live).Name))
	refused(t, "removing a live voter", cluster.ErrStillAlive)(c.Node(live).Remove(ctx, c.Member(live).Name))
	refused(t, "transferring to a dead voter", cluster.ErrUnreachable)(c.Node(live).TransferLeadership(ctx, c.Member(dead).Name))
	refused(t, "demoting a dead voter", cluster.ErrUnreachable)(c.Node(live).Demote(ctx, c.Member(dead).Name))
	done(t, "removing the dead voter")(c.Node(live).Remove(ctx, c.Member(dead).Name))
	c.Start(dead) // on its old data, under its name
	c.WaitVoters(live, 3)
	mustPropose(t, c.Node(dead), create("/a", ""))
	c.WaitEqual()
}

// TestTransferLeadership: to the one that is named, or to any; and under load nobody notices.
func TestTransferLeadership(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	ctx := testContext(t)
	single := clustertest.New(t, 1)
	refused(t, "transferring with no other voter", cluster.ErrNotVoter)(single.Node(0).TransferLeadership(ctx, ""))
	for round := range 4 {
		leader, to := c.WaitLeader(), ""
		if round%2 == 0 {
			to = c.Member(c.Follower()).Name
		}
		got, err := c.Node(c.Follower()).TransferLeadership(ctx, to)
		if err != nil || to != "" && got != to+" leads" {
			t.Fatalf("round %d: %q, %v; want %q", round, got, err, to)
		}
		if next := c.WaitLeader(); next == leader {
			t.Errorf("round %d: node %d leads again", round, leader)
		}
		mustPropose(t, c.Node(leader), create(fmt.Sprint("/", round), ""))
	}
	lead := c.Member(c.WaitLeader()).Name
	done(t, "transferring to the leader")(c.Node(c.Follower()).TransferLeadership(ctx, lead))
}

// TestNoLeaderNoChange: without a quorum a change ends in time, and says why.
func TestNoLeaderNoChange(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	last := c.Follower()
	for _, i := range c.Up() {
		if i != last {
			c.Crash(i)
		}
	}
	clustertest.Until(t, func() error {
		if _, err := c.Node(last).Remove(testContext(t), "n0"); !errors.Is(err, cluster.ErrNoLeader) {
			return fmt.Errorf("removing without a quorum: %v", err)
		}
		return nil
	})
}

// quick has the autopilot wait for little.
func quick(_ int, cfg *cluster.Config) {
	cfg.ReconcileInterval, cfg.DeadAfter = 50*time.Millisecond, 300*time.Millisecond
}

// TestReplacedVoterIsRemoved: a dead voter stays until another one has come in its place.
func TestReplacedVoterIsRemoved(t *testing.T) {
	c := clustertest.New(t, 3, quick)
	c.WaitVoters(c.WaitLeader(), 3)
	dead := c.Follower()
	c.Crash(dead)
	leader := c.WaitLeaderBut(dead)
	gossipDead(t, c, leader, dead)
	wait(t, 10*300*time.Millisecond, func() {
		if n := votersOf(c, leader); n != 3 {
			t.Fatalf("%d voters: it was removed with nothing in its place", n)
		}
	})
	late := c.Add()
	clustertest.Until(t, func() error {
		for _, m := range c.Node(late).Members() {
			if m.Name == c.Member(dead).Name {
				return fmt.Errorf("it is still there: %+v", m)
			}
		}
		return nil
	})
	c.WaitVoters(late, 3)
	mustPropose(t, c.Node(late), create("/a", ""))
}

// TestBlockedGossip: a healthy voter whom no gossip reaches is not removed, though the number
// of voters would allow it; once it is gone, it is.
func TestBlockedGossip(t *testing.T) {
	c := clustertest.New(t, 4, quick, func(_ int, cfg *cluster.Config) { cfg.BootstrapExpect = 4 })
	leader := c.WaitLeader()
	c.WaitVoters(leader, 4)
	deaf := c.Follower()
	if err := c.Node(deaf).Deafen(); err != nil {
		t.Fatal(err)
	}
	gossipDead(t, c, leader, deaf)
	wait(t, 10*300*time.Millisecond, func() {
		if n := votersOf(c, leader); n != 4 {
			t.Fatalf("%d voters: a healthy one was removed", n)
		}
	})
	mustPropose(t, c.Node(deaf), create("/a", ""))
	c.Crash(deaf)
	c.WaitVoters(c.WaitLeaderBut(deaf), 3)
}

func gossipDead(t *testing.T, c *clustertest.Cluster, i, dead int) {
	t.Helper()
	clustertest.Until(t, func() error {
		for _, m := range c.Node(i).Members() {
			if m.Name == c.Member(dead).Name && m.Alive {
				return fmt.Errorf("gossip still shows %s", m.Name)
			}
		}
		return nil
	})
}

// wait has check look again and again for as long as d.
func wait(t *testing.T, d time.Duration, check func()) {
	t.Helper()
	end := time.Now().Add(d)
	clustertest.Until(t, func() error {
		check()
		if time.Now().Before(end) {
			return errors.New("not for long enough yet")
		}
		return nil
	})
}

func votersOf(c *clustertest.Cluster, i int) (voters int) {
	for _, m := range c.Node(i).Members() {
		if m.Role == cluster.RoleVoter {
			voters++
		}
	}
	return voters
}

// TestNewNameOldAddress: another node takes over a machine's address before the old one is
// removed. It waits, and enters when it is.
func TestNewNameOldAddress(t *testing.T) {
	taken := ""
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
		if i == 3 {
			cfg.PeerAddr = taken
		}
	})
	c.WaitVoters(c.WaitLeader(), 3)
	old := c.Follower()
	taken = c.Node(old).PeerAddr()
	c.Close(old)
	through := c.WaitLeader()
	next := c.Add()
	surveyed(t, c, through, c.Member(next).Name, func(m cluster.Member) bool { return m.Role == cluster.RoleNone && m.Reachable })
	done(t, "removing the old node")(c.Node(through).Remove(testContext(t), c.Member(old).Name))
	c.WaitVoters(next, 3)
	mustPropose(t, c.Node(next), create("/a", ""))
	c.WaitEqual()
}

// TestNewAddresses: a node comes back with another IP address, and everybody finds it.
func TestNewAddresses(t *testing.T) {
	moved := -1
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
		if i == moved {
			cfg.PeerAddr, cfg.GossipAddr = "127.0.0.2:0", "127.0.0.2:0"
		}
	})
	c.WaitVoters(c.WaitLeader(), 3)
	moved = c.Follower()
	c.Close(moved)
	c.Start(moved)
	if err := c.Node(moved).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for _, i := range c.Up() {
		surveyed(t, c, i, c.Member(moved).Name, func(m cluster.Member) bool {
			return m.Reachable && strings.HasPrefix(m.PeerAddr, "127.0.0.2:") && m.Role == cluster.RoleVoter
		})
	}
	mustPropose(t, c.Node(moved), create("/moved", ""))
	c.WaitEqual()
}
