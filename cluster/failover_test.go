package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// TestLeaderCrashUnderLoad: what was acknowledged is there, once, on every node; what was
// refused is not; what is unknown is there at most once.
func TestLeaderCrashUnderLoad(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	w := newWriters(c)
	for crash := range 2 {
		w.run(t, 8)
		w.waitAcked(t, 200*(crash+1))
		leader := c.WaitLeader()
		w.pause()
		c.Crash(leader)
		w.run(t, 8)
		w.waitAcked(t, 200*(crash+1)+100)
		w.pause()
		c.Start(leader)
	}
	w.check(t, c)
}

// TestLeaderCrashInFlight crashes the leader while proposals are on their way.
func TestLeaderCrashInFlight(t *testing.T) {
	c := clustertest.New(t, 3)
	leader := c.WaitLeader()
	c.WaitVoters(leader, 3)
	w := newWriters(c)
	w.nodes = others(c, leader)
	w.run(t, 16)
	w.waitAcked(t, 100)
	before := w.count()
	c.Crash(leader)
	w.waitAcked(t, before+200)
	w.pause()
	c.Start(leader)
	w.check(t, c)
}

func others(c *clustertest.Cluster, leader int) (nodes []*cluster.Node) {
	for _, i := range c.Up() {
		if i != leader {
			nodes = append(nodes, c.Node(i))
		}
	}
	return nodes
}

// writers create keys through random nodes and remember what they were told.
type writers struct {
	cluster *clustertest.Cluster
	nodes   []*cluster.Node // where to; all that are up if nil

	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	serial  int               // guarded by mu
	acked   map[string]uint64 // guarded by mu
	unknown map[string]bool   // guarded by mu
	refused map[string]bool   // guarded by mu
}

func newWriters(c *clustertest.Cluster) *writers {
	return &writers{cluster: c, acked: map[string]uint64{}, unknown: map[string]bool{}, refused: map[string]bool{}}
}

func (w *writers) run(t *testing.T, n int) {
	w.stop = make(chan struct{})
	nodes := w.nodes
	if nodes == nil {
		nodes = others(w.cluster, -1)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range n {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		w.wg.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
					w.write(t, nodes[random.IntN(len(nodes))])
				}
			}
		})
	}
}

func (w *writers) write(t *testing.T, node *cluster.Node) {
	w.mu.Lock()
	w.serial++
	key := fmt.Sprintf("/w/%06d", w.serial)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	result, err := node.Propose(ctx, create(key, key))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && result.Code == fsm.OK:
		w.acked[key] = result.Index
	case err == nil:
		t.Errorf("creating %s once gave %v", key, result.Code)
	case errors.Is(err, cluster.ErrUnknownOutcome), errors.Is(err, cluster.ErrBehind):
		w.unknown[key] = true
	default:
		w.refused[key] = true
	}
}

func (w *writers) pause() {
	close(w.stop)
	w.wg.Wait()
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *writers) waitAcked(t *testing.T, n int) {
	t.Helper()
	clustertest.Until(t, func() error {
		if got := w.count(); got < n {
			return fmt.Errorf("%d of %d proposals are acknowledged", got, n)
		}
		return nil
	})
}

func (w *writers) check(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	c.WaitLeader()
	ctx := testContext(t)
	for _, i := range c.Up() {
		if err := c.Node(i).Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	c.WaitEqual()
	view := c.FSM(c.Up()[0]).View()
	for key, index := range w.acked {
		if entry, ok := view.Get(key); !ok || entry.ModIndex != index {
			t.Errorf("%s was acknowledged at %d, and is %v", key, index, entry)
		}
	}
	for key := range w.refused {
		if _, ok := view.Get(key); ok {
			t.Errorf("%s was surely not proposed, and is there", key)
		}
	}
	t.Logf("%d acknowledged, %d unknown, %d refused", len(w.acked), len(w.unknown), len(w.refused))
}

// TestFailoverTime reports how long after the leader's crash a follower's next write takes,
// with the settings of production.
func TestFailoverTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := clustertest.New(t, 3, production)
	for range 3 {
		leader := c.WaitLeader()
		c.WaitVoters(leader, 3)
		follower := c.Follower()
		start := time.Now()
		c.Crash(leader)
		if _, err := c.Node(follower).Propose(testContext(t), create(fmt.Sprint("/", start.UnixNano()), "")); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		t.Logf("next write after %s", took.Round(time.Millisecond))
		if took > 6*time.Second {
			t.Errorf("the next write took %s", took)
		}
		c.Start(leader)
	}
}
