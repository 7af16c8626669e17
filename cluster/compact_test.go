package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// compactConfig compacts small files too.
func compactConfig() *Config {
	cfg := DefaultConfig()
	cfg.Logger, cfg.CompactBytes, cfg.StartTimeout = hclog.NewNullLogger(), 32<<20, 100*time.Millisecond
	return &cfg
}

func reopen(t *testing.T, dir string, cfg *Config) *storage {
	t.Helper()
	s, err := openStorage(dir, cfg, func(err error) { t.Errorf("reported %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fillLog stores entries with 64 KiB each, and deletes those up to upTo.
func fillLog(t *testing.T, dir string, last, upTo uint64) (size int64) {
	t.Helper()
	s := reopen(t, dir, compactConfig())
	logs := entries(1, last)
	for _, log := range logs {
		log.Data = Noise(log.Index, 64<<10)
	}
	err := s.logs.StoreLogs(logs)
	if err == nil {
		err = s.logs.SetUint64([]byte("CurrentTerm"), 7)
	}
	if err == nil && upTo > 0 {
		err = s.logs.DeleteRange(1, upTo)
	}
	if err == nil && upTo > 0 {
		err = writeSnapshot(s, upTo)
	}
	if err := errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
	return logSize(t, dir)
}

// writeSnapshot makes the deleted front of a log a legal one.
func writeSnapshot(s *storage, index uint64) error {
	sink, err := s.snapshots.Create(raft.SnapshotVersionMax, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		return err
	}
	return sink.Close()
}

func logSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// checkContents fails unless the log has exactly these entries, and the term.
func checkContents(t *testing.T, s *storage, first, last uint64) {
	t.Helper()
	gotFirst, err1 := s.logs.FirstIndex()
	gotLast, err2 := s.logs.LastIndex()
	term, err3 := s.logs.GetUint64([]byte("CurrentTerm"))
	if err := errors.Join(err1, err2, err3); err != nil || gotFirst != first || gotLast != last || term != 7 {
		t.Errorf("entries %d to %d, term %d, %v; want %d to %d, term 7", gotFirst, gotLast, term, err, first, last)
	}
	for i := first; i <= last; i++ {
		var log raft.Log
		if err := s.logs.GetLog(i, &log); err != nil || !bytes.Equal(log.Data, Noise(i, 64<<10)) {
			t.Fatalf("entry %d: %d bytes, %v", i, len(log.Data), err)
		}
	}
}

func TestCompactAtStart(t *testing.T) {
	dir := t.TempDir()
	before := fillLog(t, dir, 800, 780)
	s := reopen(t, dir, compactConfig())
	checkContents(t, s, 781, 800)
	if after := logSize(t, dir); after > before/2 {
		t.Errorf("the log has %d bytes, before it had %d", after, before)
	}
	if err := s.logs.StoreLogs(entries(801, 801)); err != nil {
		t.Errorf("storing after it: %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	size := logSize(t, dir)
	if err := reopen(t, dir, compactConfig()).close(); err != nil || logSize(t, dir) != size {
		t.Errorf("compacted again: %d bytes, before %d, %v", logSize(t, dir), size, err)
	}
}

// TestCompactLeftAlone: logs that are in use, that are small, or for which there is no room.
func TestCompactLeftAlone(t *testing.T) {
	for name, row := range map[string]struct {
		upTo   uint64
		change func(*Config)
	}{
		"in use":  {upTo: 100, change: func(*Config) {}},
		"small":   {upTo: 780, change: func(c *Config) { c.CompactBytes = 128 << 20 }},
		"no room": {upTo: 780, change: func(c *Config) { c.DiskSpace = func(string) (uint64, uint64, error) { return 1 << 20, 1 << 30, nil } }},
	} {
		dir := t.TempDir()
		before := fillLog(t, dir, 800, row.upTo)
		cfg := compactConfig()
		row.change(cfg)
		s := reopen(t, dir, cfg)
		checkContents(t, s, row.upTo+1, 800)
		if after := logSize(t, dir); after != before {
			t.Errorf("%s: the log has %d bytes, before it had %d", name, after, before)
		}
		s.close()
	}
}

// TestCompactCrash: the process ends before the new file takes the old one's name. The next
// start takes away what is left, and compacts.
func TestCompactCrash(t *testing.T) {
	dir := t.TempDir()
	before := fillLog(t, dir, 800, 780)
	left := filepath.Join(dir, logFile+compactSuffix)
	crash := compactConfig()
	crash.Faults = func(op string) error {
		if op == OpCompactRename {
			panic("crash")
		}
		return nil
	}
	if _, err := openStorage(dir, crash, nil); err == nil {
		t.Fatal("the crash did not happen")
	}
	if _, err := os.Stat(left); err != nil || logSize(t, dir) != before {
		t.Fatalf("after the crash: %v, the log has %d bytes", err, logSize(t, dir))
	}
	if err := os.Truncate(left, 1000); err != nil { // as if it had never reached the disk
		t.Fatal(err)
	}
	s := reopen(t, dir, compactConfig())
	defer s.close()
	checkContents(t, s, 781, 800)
	if _, err := os.Stat(left); err == nil || logSize(t, dir) > before/2 {
		t.Errorf("after the next start: %v, the log has %d bytes", err, logSize(t, dir))
	}
}

// TestCompactLocks: while the log is compacted, a second process is told that it is in use.
func TestCompactLocks(t *testing.T) {
	dir := t.TempDir()
	fillLog(t, dir, 800, 780)
	cfg := compactConfig()
	var second error
	cfg.Faults = func(op string) error {
		if op == OpCompactRename {
			_, second = openStorage(dir, compactConfig(), nil)
		}
		return nil
	}
	s := reopen(t, dir, cfg)
	defer s.close()
	if !errors.Is(second, ErrInUse) {
		t.Errorf("a second process during the compaction: %v", second)
	}
}

// TestReplacedLogIsNotOpened: who waited for the lock while the log was compacted gets it on
// the old file, and must not take that for the log.
func TestReplacedLogIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	fillLog(t, dir, 10, 0)
	path := filepath.Join(dir, logFile)
	holder, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := openBolt(path, time.Minute)
		waited <- err
	}()
	waitOpenTwice(t, path)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err := errors.Join(err, os.Rename(path+".new", path), holder.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, ErrInUse) {
		t.Errorf("opening the replaced log: %v", err)
	}
}

// waitOpenTwice waits until this process has the file open twice.
func waitOpenTwice(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("this system does not show which files are open")
	}
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(time.Millisecond) {
		links, _ := filepath.Glob("/proc/self/fd/*")
		open := 0
		for _, link := range links {
			if target, _ := os.Readlink(link); target == path {
				open++
			}
		}
		if open == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is open %d times, want 2", path, open)
		}
	}
}

// TestDamagedLogIsNotCompacted: what cannot be read is reported, not copied.
func TestDamagedLogIsNotCompacted(t *testing.T) {
	dir := t.TempDir()
	size := fillLog(t, dir, 800, 780)
	path := filepath.Join(dir, logFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * os.Getpagesize(); i < len(data); i += os.Getpagesize() {
		copy(data[i:], bytes.Repeat([]byte{0xff}, 16))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStorage(dir, compactConfig(), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("opening it: %v", err)
	}
	if after := logSize(t, dir); after != size {
		t.Errorf("the log has %d bytes, before it had %d", after, size)
	}
}
