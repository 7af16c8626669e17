package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// put writes keys that carry a mark, through node i.
func put(t *testing.T, c *clustertest.Cluster, i int, mark string, count, size int) {
	t.Helper()
	for k := range count {
		value := append([]byte(mark), make([]byte, size)...)
		cmd := fsm.Command{Op: fsm.OpCreate, Key: fmt.Sprintf("/core/things/%s-%04d", mark, k), Value: value}
		if _, err := c.Node(i).Propose(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
}

func backupOf(t *testing.T, n *cluster.Node) []byte {
	t.Helper()
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := n.Backup().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// marks counts the keys of a state by their mark.
func marks(v *fsm.View) map[string]int {
	counts := make(map[string]int)
	v.Ascend("/core/things/", "", func(e *fsm.Entry) bool {
		mark, _, _ := strings.Cut(strings.TrimPrefix(e.Key, "/core/things/"), "-")
		counts[mark]++
		return true
	})
	return counts
}

func expectMarks(t *testing.T, c *clustertest.Cluster, want map[string]int) {
	t.Helper()
	for _, i := range c.Up() {
		if got := marks(c.FSM(i).View()); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("node %d has %v, want %v", i, got, want)
		}
	}
}

// TestRestore restores through each node of a running cluster, and goes on after a restart
// of all of them.
func TestRestore(t *testing.T) {
	c := clustertest.New(t, 3)
	put(t, c, 0, "old", 20, 30_000) // several pieces
	backup := backupOf(t, c.Node(1))
	for i := range 3 {
		put(t, c, i, "new", 5, 10)
		restored, err := c.Node(i).Restore(t.Context(), bytes.NewReader(backup))
		if err != nil {
			t.Fatal(err)
		}
		if restored.Objects != 20 || restored.At < restored.Index+fsm.RestoreGap {
			t.Errorf("restored %+v", restored)
		}
		c.WaitIndex(restored.At)
		c.WaitEqual()
		expectMarks(t, c, map[string]int{"old": 20})
	}
	put(t, c, 0, "after", 1, 10)
	index := c.FSM(0).Index()
	for _, i := range c.Up() {
		c.Restart(i)
	}
	c.WaitIndex(index)
	c.WaitEqual()
	expectMarks(t, c, map[string]int{"old": 20, "after": 1})
}

// TestRestoreReachesFollowerBySnapshot: a node that was down while a backup was restored,
// and whose log the others have compacted, gets the new state with its index.
func TestRestoreReachesFollowerBySnapshot(t *testing.T) {
	c := clustertest.New(t, 3, func(_ int, cfg *cluster.Config) {
		cfg.SnapshotThreshold, cfg.SnapshotInterval, cfg.TrailingLogs = 10, 50*time.Millisecond, 5
	})
	put(t, c, 0, "old", 5, 10)
	backup := backupOf(t, c.Node(0))
	down := c.Follower()
	c.Crash(down)
	up := c.Up()[0]
	restored, err := c.Node(up).Restore(t.Context(), bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, up, "after", 60, 10)
	c.Start(down)
	c.WaitIndex(restored.At + 60)
	c.WaitEqual()
	expectMarks(t, c, map[string]int{"old": 5, "after": 60})
	c.Restart(down)
	c.WaitIndex(restored.At + 60)
	c.WaitEqual()
}

// TestLagAcrossRestore: nodes that have the same lag nothing, whether the last entries were
// commands or raft's own, and though a restore moves the index of the state ahead of raft's.
func TestLagAcrossRestore(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitLeader()
	noLag := func(when string) {
		t.Helper()
		c.WaitEqual()
		for i := range 3 {
			for _, m := range c.Node(i).Survey(t.Context()) {
				if !m.Reachable || m.Lag != 0 || m.Applied != c.FSM(i).Index() {
					t.Errorf("%s, node %d says of %s: %+v, want %d", when, i, m.Name, m, c.FSM(i).Index())
				}
			}
		}
	}
	noLag("at the start")
	put(t, c, 0, "old", 5, 10)
	if _, err := c.Node(1).Restore(t.Context(), bytes.NewReader(backupOf(t, c.Node(0)))); err != nil {
		t.Fatal(err)
	}
	noLag("after a restore")
	c.Restart(c.WaitLeader())
	c.WaitLeader()
	noLag("after an election")
}

// TestRestoreSparesTheDisk: a backup that does not fit is refused before it has taken the room
// that the log needs.
func TestRestoreSparesTheDisk(t *testing.T) {
	const total, reserve, size = 64 << 20, 32 << 20, 256 << 20
	sent := &counted{Reader: io.LimitReader(zeros{}, size)}
	c := clustertest.New(t, 1, func(_ int, cfg *cluster.Config) {
		cfg.DiskReserve = cluster.DiskReserve{Least: reserve}
		cfg.DiskSpace = func(string) (uint64, uint64, error) { return uint64(max(0, total-sent.n.Load())), total, nil }
	})
	c.WaitLeader()
	if _, err := c.Node(0).Restore(t.Context(), sent); !errors.Is(err, cluster.ErrDiskFull) {
		t.Errorf("a backup of %d bytes: %v", size, err)
	}
	if taken := sent.n.Load(); taken > total-reserve/2 {
		t.Errorf("it took %d bytes of %d free, with a reserve of %d", taken, total, reserve)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// counted knows how much was read.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestRestoreInterrupted kills the leader, who may be the one that restores, at a random
// moment: every node ends with the old state, or every one with the new, and no index falls.
func TestRestoreInterrupted(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	c := clustertest.New(t, 3)
	put(t, c, 0, "old", 60, 60_000)
	backup := backupOf(t, c.Node(0))
	var took time.Duration
	outcomes := make(map[string]int)
	for round := range 8 {
		mark := fmt.Sprintf("round%d", round)
		put(t, c, c.WaitLeader(), mark, 3, 10)
		leader, through := c.WaitLeader(), c.WaitLeader()
		if round%2 == 1 {
			through = c.Follower()
		}
		c.WaitEqual()
		node, start, before := c.Node(through), time.Now(), c.FSM(through).Index()
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
			defer cancel()
			_, err := node.Restore(ctx, bytes.NewReader(backup))
			done <- err
		}()
		if round > 0 { // the first one shows how long it takes
			<-time.After(time.Duration(random.Int64N(int64(took)*5/4 + 1)))
			c.Crash(leader)
		}
		err := <-done
		if round == 0 {
			if took = time.Since(start); err != nil {
				t.Fatal(err)
			}
			continue
		}
		c.WaitLeader()
		c.Start(leader)
		c.WaitIndex(before)
		put(t, c, c.WaitLeader(), "probe"+mark, 1, 10)
		c.WaitLeader()
		c.WaitEqual()
		outcomes[restoreOutcome(t, c, mark, err)]++
	}
	t.Logf("a restore takes %s, outcomes %v", took, outcomes)
}

func restoreOutcome(t *testing.T, c *clustertest.Cluster, mark string, err error) string {
	t.Helper()
	for _, i := range c.Up() {
		got := marks(c.FSM(i).View())
		replaced := got[mark] == 0
		switch {
		case got["old"] != 60 || got[mark] != 0 && got[mark] != 3 || got["probe"+mark] != 1:
			t.Fatalf("%s: node %d has a mixed state %v", mark, i, got)
		case err == nil && !replaced:
			t.Fatalf("%s: a restore that was acknowledged is lost on node %d", mark, i)
		case err != nil && replaced && !errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrBehind):
			t.Fatalf("%s: restored on node %d in spite of %v", mark, i, err)
		}
		if i == c.Up()[len(c.Up())-1] {
			return fmt.Sprintf("error %t, replaced %t", err != nil, replaced)
		}
	}
	return ""
}

// TestRestoreRefuses feeds broken backups: nothing is proposed.
func TestRestoreRefuses(t *testing.T) {
	c := clustertest.New(t, 1)
	put(t, c, 0, "old", 3, 10)
	good := backupOf(t, c.Node(0))
	index := c.FSM(0).Index()
	refuse := func(what string, b []byte, want string) {
		t.Helper()
		_, err := c.Node(0).Restore(t.Context(), bytes.NewReader(b))
		if !errors.Is(err, cluster.ErrBadBackup) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", what, err, want)
		}
	}
	for n := 0; n < len(good); n += 7 {
		refuse(fmt.Sprintf("first %d bytes", n), good[:n], "")
	}
	for at := range good {
		b := bytes.Clone(good)
		b[at] ^= 4
		refuse(fmt.Sprintf("byte %d flipped", at), b, "")
	}
	refuse("trailing", append(bytes.Clone(good), 0), "after the end")
	refuse("later", bytes.Replace(good, []byte("BACKUP 1"), []byte("BACKUP 2"), 1), "later format")
	refuse("foreign", bytes.Repeat([]byte("x"), 100), "not written by kontiki")
	if c.FSM(0).Index() != index {
		t.Errorf("index %d, want %d: something was proposed", c.FSM(0).Index(), index)
	}
}
