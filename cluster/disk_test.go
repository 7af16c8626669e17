package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

const mib = 1 << 20

// fakeDisk is a file system of 1000 MiB with a reserve of 100.
type fakeDisk struct{ free atomic.Uint64 }

func newFakeDisk() *fakeDisk {
	d := new(fakeDisk)
	d.free.Store(500 * mib)
	return d
}

func (d *fakeDisk) option() clustertest.Option {
	return func(_ int, cfg *cluster.Config) {
		cfg.DiskReserve = cluster.DiskReserve{Percent: 10}
		cfg.DiskSpace = func(string) (free, total uint64, err error) {
			return d.free.Load(), 1000 * mib, nil
		}
	}
}

// set makes so much free and waits until the node has seen it.
func (d *fakeDisk) set(t *testing.T, node *cluster.Node, free uint64) {
	t.Helper()
	d.free.Store(free)
	clustertest.Until(t, func() error {
		if got := node.Disk().Free; got != free {
			return fmt.Errorf("it sees %d MiB", got/mib)
		}
		return nil
	})
}

var diskKeys atomic.Uint64

func propose(node *cluster.Node, op fsm.Op, key string, size int) error {
	if key == "" {
		key = fmt.Sprintf("/disk/%d", diskKeys.Add(1))
	}
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	cmd := fsm.Command{Op: op, Key: key}
	if op != fsm.OpDelete {
		cmd.Value = cluster.Noise(1, size)
	}
	result, err := node.Propose(ctx, cmd)
	if err == nil && result.Code != fsm.OK {
		err = fmt.Errorf("result %s", result.Code)
	}
	return err
}

// TestDiskLevels: what passes on which level, and that it heals by itself.
func TestDiskLevels(t *testing.T) {
	t.Parallel()
	disk := newFakeDisk()
	c := clustertest.New(t, 1, disk.option())
	node := c.Node(0)
	for _, key := range []string{"/disk/a", "/disk/b", "/disk/c", "/disk/d", "/disk/e"} {
		if err := propose(node, fsm.OpCreate, key, 100); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		free                                 uint64
		level                                cluster.DiskLevel
		create, update, largeCreate, largeUp bool
		victim                               string
	}{
		{500, cluster.DiskOK, true, true, true, true, "/disk/a"},
		{99, cluster.DiskLow, true, true, false, false, "/disk/b"},
		{49, cluster.DiskScant, false, true, false, false, "/disk/c"},
		{12, cluster.DiskFull, false, false, false, false, "/disk/d"},
		{100, cluster.DiskOK, true, true, true, true, "/disk/e"},
	} {
		disk.set(t, node, row.free*mib)
		if got := node.Disk().Level; got != row.level {
			t.Errorf("%d MiB free of a reserve of 100: level %s, want %s", row.free, got, row.level)
		}
		if err := propose(node, fsm.OpCreate, "/disk/z", 100); (err == nil) != row.create {
			t.Errorf("%s: create: %v", row.level, err)
		}
		for what, try := range map[string]struct {
			op   fsm.Op
			key  string
			size int
			want bool
		}{
			"small update": {fsm.OpUpdate, row.victim, 15 << 10, row.update},
			"large create": {fsm.OpCreate, "", 17 << 10, row.largeCreate},
			"large update": {fsm.OpUpdate, row.victim, 17 << 10, row.largeUp},
		} {
			err := propose(node, try.op, try.key, try.size)
			if (err == nil) != try.want || err != nil && !errors.Is(err, cluster.ErrDiskFull) {
				t.Errorf("%s: %s: %v", row.level, what, err)
			}
		}
		if err := propose(node, fsm.OpDelete, row.victim, 0); err != nil {
			t.Errorf("%s: delete: %v", row.level, err)
		}
		propose(node, fsm.OpDelete, "/disk/z", 0)
	}
}

// TestDiskOfLeader: a follower with space of its own is refused by a leader that has none,
// at once and definitely; and the other way round the follower's own disk counts.
func TestDiskOfLeader(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"leader", "follower"} {
		disk, which := newFakeDisk(), new(atomic.Int64)
		which.Store(-2)
		c := clustertest.New(t, 3, func(i int, cfg *cluster.Config) {
			cfg.DiskReserve = cluster.DiskReserve{Percent: 10}
			cfg.DiskSpace = func(string) (uint64, uint64, error) {
				if int64(i) == which.Load() {
					return disk.free.Load(), 1000 * mib, nil
				}
				return 500 * mib, 1000 * mib, nil
			}
		})
		leader := c.WaitLeader()
		follower := c.Follower()
		full := map[string]int{"leader": leader, "follower": follower}[of]
		which.Store(int64(full))
		disk.set(t, c.Node(full), 20*mib)
		start := time.Now()
		if err := propose(c.Node(follower), fsm.OpCreate, "", 100); !errors.Is(err, cluster.ErrDiskFull) {
			t.Errorf("the %s's disk is full: create through the follower: %v", of, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the %s's disk is full: the refusal took %s", of, took)
		}
		ctx, cancel := context.WithTimeout(cluster.MakesRoom(t.Context()), clustertest.Patience)
		cmd := fsm.Command{Op: fsm.OpCreate, Key: "/disk/room/" + of}
		if _, err := c.Node(follower).Propose(ctx, cmd); err != nil {
			t.Errorf("the %s's disk is full: what makes room: %v", of, err)
		}
		cancel()
		disk.set(t, c.Node(full), 400*mib)
		if err := propose(c.Node(follower), fsm.OpCreate, "", 100); err != nil {
			t.Errorf("the %s's disk has space again: %v", of, err)
		}
	}
}

func TestDiskReserveOf(t *testing.T) {
	def := cluster.DefaultConfig().DiskReserve
	for _, row := range []struct {
		reserve     cluster.DiskReserve
		total, want uint64
	}{
		{def, 100 << 30, 4 << 30}, {def, 20 << 30, 1 << 30}, {def, 100 << 20, 64 << 20},
		{cluster.DiskReserve{}, 100 << 30, 0}, {cluster.DiskReserve{Least: 5, Most: 5}, 1 << 40, 5},
	} {
		if got := row.reserve.Of(row.total); got != row.want {
			t.Errorf("%+v of %d is %d, want %d", row.reserve, row.total, got, row.want)
		}
	}
}

// TestNoSpaceLeft: on a file system that is really full, and without a reserve, the node
// ends in good order; with space again it starts, and has every write it acknowledged.
func TestNoSpaceLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a file system with a size needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	small := func(_ int, cfg *cluster.Config) {
		cfg.DataDir = dir
		cfg.DiskReserve = cluster.DiskReserve{}
		cfg.RetryFor = time.Second
	}
	c := clustertest.New(t, 1, small)
	acknowledged := 0
	var err error
	for ; err == nil && acknowledged < 1000; acknowledged++ {
		err = propose(c.Node(0), fsm.OpCreate, fmt.Sprintf("/disk/%d", acknowledged), 256<<10)
	}
	acknowledged--
	if err == nil {
		t.Fatal("256 MB fit into 24")
	}
	if !errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("the write that did not fit: %v", err)
	}
	fatal := <-c.Node(0).Fatal()
	if !errors.Is(fatal, cluster.ErrDisk) || !errors.Is(fatal, syscall.ENOSPC) {
		t.Fatalf("the node ends with %v", fatal)
	}
	c.Crash(0)
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 24<<20), 0o600); err == nil {
		t.Fatal("the file system is not full")
	}
	if err := c.TryStart(0); err == nil {
		c.Crash(0) // it may start, if it has nothing to write
	}
	if err := os.Remove(filepath.Join(dir, "full")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	c.Start(0)
	c.WaitLeader()
	for i := range acknowledged {
		if _, ok := c.FSM(0).View().Get(fmt.Sprintf("/disk/%d", i)); !ok {
			t.Fatalf("write %d of %d is lost", i, acknowledged)
		}
	}
	if err := propose(c.Node(0), fsm.OpCreate, "/disk/after", 256<<10); err != nil {
		t.Error(err)
	}
}

// TestReserveKeepsDeletes: with the reserve, a file system is filled up until writes are
// refused; deletes then pass, as many as there are objects, and the node never stops.
func TestReserveKeepsDeletes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("a file system with a size needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := clustertest.New(t, 1, func(_ int, cfg *cluster.Config) {
		cfg.DataDir = dir
		cfg.DiskReserve = cluster.DiskReserve{Least: 48 * mib}
		cfg.SnapshotThreshold, cfg.TrailingLogs, cfg.SnapshotInterval = 64, 16, 50*time.Millisecond
	})
	node := c.Node(0)
	written := 0
	var err error
	for ; err == nil && written < 2000; written++ {
		err = propose(node, fsm.OpCreate, fmt.Sprintf("/disk/%d", written), 128<<10)
	}
	written--
	if !errors.Is(err, cluster.ErrDiskFull) {
		t.Fatalf("after %d writes: %v", written, err)
	}
	for i := range written {
		if err := propose(node, fsm.OpDelete, fmt.Sprintf("/disk/%d", i), 0); err != nil {
			t.Fatalf("delete %d of %d: %v", i, written, err)
		}
	}
	clustertest.Until(t, func() error {
		propose(node, fsm.OpCreate, "", 10) // entries, so that raft takes a snapshot
		return propose(node, fsm.OpCreate, "", 100<<10)
	})
	select {
	case err := <-node.Fatal():
		t.Errorf("the node has ended: %v", err)
	default:
	}
}
