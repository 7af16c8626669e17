package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// TestReadIndexSeesEveryWrite: a read on any node that begins after a write was
// acknowledged on any node sees it, also while leaders change.
func TestReadIndexSeesEveryWrite(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	nodes := c.Up()
	var serial [3]int
	for _, i := range nodes {
		reader := (i + 1) % 3
		writerNode, readerNode, readerFSM := c.Node(i), c.Node(reader), c.FSM(reader)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
				serial[i]++
				key := fmt.Sprintf("/%d/%d", i, serial[i])
				result, err := writerNode.Propose(ctx, create(key, ""))
				if err == nil && result.Code == fsm.OK && readerNode.Ready(ctx) == nil {
					if _, ok := readerFSM.View().Get(key); !ok {
						t.Errorf("%s was acknowledged before a consistent read that does not see it", key)
					}
				}
				cancel()
			}
		})
	}
	for range 3 {
		before := c.FSM(c.WaitLeader()).Index()
		c.WaitIndex(before + 50)
		stepDown(t, c)
	}
	close(stop)
	wg.Wait()
	c.WaitEqual()
}

// TestAttested: a leader takes the word of one voter where the two are a majority, for its own
// term and for as long as it leads.
func TestAttested(t *testing.T) {
	c := clustertest.New(t, 3)
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	term, voter := c.Node(leader).Status().Term, c.Node(c.Follower()).Status().Name
	for _, test := range []struct {
		asker string
		term  uint64
		want  bool
	}{{voter, term, true}, {voter, term - 1, false}, {voter, term + 1, false}, {"stranger", term, false}} {
		if got := c.Node(leader).Attested(test.asker, test.term); got != test.want {
			t.Errorf("%s in term %d: %t, want %t", test.asker, test.term, got, test.want)
		}
	}
	stepDown(t, c)
	clustertest.Until(t, func() error { // until then it may: a voter that is still in the term has not voted in a later one
		if now := c.Node(leader).Status().Term; now <= term {
			return fmt.Errorf("the old leader has not heard of a term after %d", term)
		}
		return nil
	})
	if c.Node(leader).Attested(voter, term) {
		t.Error("a node that has stepped down confirms its term")
	}
}

// TestOneOfFiveIsNotEnough: two of five voters are no majority.
func TestOneOfFiveIsNotEnough(t *testing.T) {
	c := clustertest.New(t, 5)
	leader := c.WaitLeader()
	c.WaitVoters(leader, 5)
	if c.Node(leader).Attested(c.Node(c.Follower()).Status().Name, c.Node(leader).Status().Term) {
		t.Error("a leader and one of four others confirmed a term")
	}
}

// stepDown has the leader's raft hear of a newer term, by making another node an eager candidate.
func stepDown(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	before := c.Node(c.WaitLeader()).Status().Term
	c.Node(c.Follower()).ForceElection()
	clustertest.Until(t, func() error {
		for _, i := range c.Up() {
			if s := c.Node(i).Status(); s.Presiding && s.Term > before {
				return nil
			}
		}
		return fmt.Errorf("no leader in a term after %d", before)
	})
}

func TestReadyAfterRestart(t *testing.T) {
	c := clustertest.New(t, 3)
	follower := c.Follower()
	mustPropose(t, c.Node(follower), create("/before", ""))
	c.Crash(follower)
	for i := range 20 {
		mustPropose(t, c.Node(c.WaitLeader()), create(fmt.Sprint("/while-down/", i), ""))
	}
	c.Start(follower)
	if err := c.Node(follower).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Node(follower).CaughtUp():
	default:
		t.Error("the node says it is ready and that it has not caught up")
	}
	for _, key := range []string{"/before", "/while-down/19"} {
		if _, ok := c.FSM(follower).View().Get(key); !ok {
			t.Errorf("the node says it is ready and does not have %s", key)
		}
	}
}

func TestSingleNode(t *testing.T) {
	c := clustertest.New(t, 1)
	for i := range 10 {
		mustPropose(t, c.Node(0), create(fmt.Sprint("/", i), ""))
	}
	c.Restart(0)
	if err := c.Node(0).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if n := c.FSM(0).View().Len(); n != 10 {
		t.Errorf("%d of 10 entries are there after a restart", n)
	}
}

// TestDeposedLeaderIsNotStale: a leader whose raft hangs, on its disk or in a pause, does not
// hear that the others have chosen another and gone on. It must not answer from what it has.
func TestDeposedLeaderIsNotStale(t *testing.T) {
	var hung atomic.Int64
	hung.Store(-1)
	hangs, release := make(chan struct{}, 1), make(chan struct{})
	c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
		cfg.Faults = func(op string) error {
			if op == cluster.OpLogStore && hung.Load() == int64(i) {
				hangs <- struct{}{}
				<-release
			}
			return nil
		}
	})
	old := c.WaitLeader()
	c.WaitVoters(old, 3)
	mustPropose(t, c.Node(old), create("/before", ""))
	c.WaitEqual()
	hung.Store(int64(old))
	ctx := testContext(t)
	go c.Node(old).Propose(ctx, create("/hangs", "")) // nobody has it
	<-hangs
	next := c.Follower()
	elect(t, c, next, 3-old-next, func(s cluster.Status) bool { return s.Presiding })
	mustPropose(t, c.Node(next), create("/after", ""))
	if s := c.Node(old).Status(); s.State != "Leader" || !s.Presiding {
		t.Fatalf("the old leader has heard of the new one, so this tests nothing: %+v", s)
	}
	brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := c.Node(old).Ready(brief); err == nil {
		if _, ok := c.FSM(old).View().Get("/after"); !ok {
			t.Error("a read on a deposed leader misses what the new one has acknowledged")
		}
	}
	hung.Store(-1)
	close(release)
	c.WaitEqual()
}
