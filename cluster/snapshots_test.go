package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestDamagedSnapshot: a node that has only damaged snapshots says which and what to do. If an
// older one can be read it takes that, but not when the log no longer begins where it ends,
// which raft would find out by a panic.
func TestDamagedSnapshot(t *testing.T) {
	dir := t.TempDir()
	s, _ := testStorage(t, dir, nil)
	if err := s.logs.StoreLogs(entries(1, 30)); err != nil {
		t.Fatal(err)
	}
	for _, index := range []uint64{10, 20} {
		saveSnapshot(t, s, index)
	}
	s.close()
	cfg := DefaultConfig()
	cfg.Logger, cfg.StartTimeout = hclog.NewNullLogger(), time.Second
	reopen := func(what, want string) {
		t.Helper()
		s, err := openStorage(dir, &cfg, func(error) {})
		if err == nil {
			defer s.close()
		}
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	spoil := func(index string) {
		t.Helper()
		files, _ := filepath.Glob(filepath.Join(dir, "snapshots", "1-"+index+"-*", "state.bin"))
		if len(files) != 1 {
			t.Fatalf("no snapshot of %s: %v", index, files)
		}
		if err := os.WriteFile(files[0], []byte("State"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reopen("nothing damaged", "")
	spoil("20")
	reopen("an older one fits the log", "")
	if s, err := openStorage(dir, &cfg, func(error) {}); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(s.logs.DeleteRange(1, 15), s.close()); err != nil {
		t.Fatal(err)
	}
	reopen("an older one does not fit the log", "entries 11 to 15 are missing")
	spoil("10")
	reopen("all damaged", "1-20-")
}

func saveSnapshot(t *testing.T, s *storage, index uint64) {
	t.Helper()
	sink, err := s.snapshots.Create(raft.SnapshotVersionMax, index, 1, raft.Configuration{}, 1, nil)
	if err == nil {
		_, err = sink.Write([]byte("state"))
	}
	if err := errors.Join(err, sink.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotFaults: every step of writing a snapshot asks before and after.
func TestSnapshotFaults(t *testing.T) {
	var asked []string
	s, _ := testStorage(t, t.TempDir(), func(op string) error {
		asked = append(asked, op)
		return nil
	})
	saveSnapshot(t, s, 10)
	var want []string
	for _, op := range []string{OpSnapshotCreate, OpSnapshotWrite, OpSnapshotClose} {
		want = append(want, op, op+OpDone)
	}
	if strings.Join(asked, " ") != strings.Join(want, " ") {
		t.Errorf("asked %v, want %v", asked, want)
	}
}
