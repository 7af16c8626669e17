package cluster

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestSnapshotAfterFullDisk: a snapshot that finds the disk full leaves nothing, so that the
// next one, which is smaller, fits.
func TestSnapshotAfterFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a file system with a size needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	store, err := openSnapshots(dir, &Config{Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	write := func(index uint64, size int) error {
		sink, err := store.Create(raft.SnapshotVersionMax, index, 1, raft.Configuration{}, 1, nil)
		if err != nil {
			return err
		}
		if _, err := sink.Write(make([]byte, size)); err != nil {
			if sink.Cancel() == nil {
				t.Error("raft's sinks can be cancelled on a full disk now: this wrapper is not needed")
			}
			return err
		}
		return sink.Close()
	}
	for index := uint64(1); index < 10; index += 2 {
		if err := write(index, 3<<20); err == nil {
			t.Fatal("more was written than there is space for")
		}
		if err := write(index+1, 1<<19); err != nil {
			t.Fatalf("a small snapshot after one that found the disk full: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp")); len(left) > 0 {
			t.Errorf("left over: %s", left)
		}
	}
}
