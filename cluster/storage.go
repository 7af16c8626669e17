package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	logFile = "raft.db"

	// retainSnapshots is two, so that one that cannot be read is not the end.
	retainSnapshots = 2

	// logCacheEntries is about what followers that keep up ask for.
	logCacheEntries = 512

	// mmapBytes is address space, not memory. bbolt remaps, and stops its readers
	// meanwhile, whenever the file outgrows it.
	mmapBytes = 256 << 20
)

// storage is what a node keeps on disk for raft, below DATA/raft.
type storage struct {
	bolt      *raftboltdb.BoltStore
	logs      *logStore
	cache     *raft.LogCache
	snapshots raft.SnapshotStore
}

// openStorage opens, or makes, the stores in dir. Its errors are one line and say what to do.
func openStorage(dir string, cfg *Config, report func(error)) (*storage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data directory: %w", err)
	}
	path := filepath.Join(dir, logFile)
	if err := checkLog(path, cfg.StartTimeout); err != nil {
		return nil, err
	}
	if err := compactLog(path, cfg); err != nil {
		return nil, err
	}
	bolt, err := openBolt(path, cfg.StartTimeout)
	if err != nil {
		return nil, err
	}
	s := &storage{bolt: bolt, logs: newLogStore(bolt, path, cfg.LogDeadline, cfg.Faults, report)}
	if s.snapshots, err = openSnapshots(dir, cfg); err == nil {
		err = s.joinEnds(path)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.cache, err = raft.NewLogCache(logCacheEntries, s.logs)
	return s, err
}

func openBolt(path string, timeout time.Duration) (store *raftboltdb.BoltStore, err error) {
	defer recoverDamage(path, &err)
	before, statErr := os.Stat(path)
	store, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions(timeout)})
	if err != nil || statErr != nil {
		return store, explainOpen(path, err)
	}
	// Whoever waited for the lock may have got it on the file that a compaction has replaced.
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(explainOpen(path, berrors.ErrTimeout), store.Close())
	}
	return store, nil
}

func boltOptions(timeout time.Duration) *bbolt.Options {
	return &bbolt.Options{
		Timeout: timeout,
		// The list of free pages is found again by a scan at the next start, instead of
		// being written and synced with every commit.
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mmapBytes,
	}
}

func explainOpen(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w: %s is locked: stop the other kontiki, or use another --data-dir", ErrInUse, filepath.Dir(filepath.Dir(path)))
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch), strings.Contains(err.Error(), "file size too small"):
		return damaged(path, err)
	}
	return fmt.Errorf("cannot open the log: %w", err)
}

func damaged(path string, cause any) error {
	return fmt.Errorf("%w: %s: %v: run \"kontiki members remove\" with the name of this node against another one, then start this one with an empty data directory: it joins as a new member", ErrCorrupt, path, cause)
}

// recoverDamage turns bbolt's way to report a damaged page, a panic, into an error.
func recoverDamage(path string, err *error) {
	if cause := recover(); cause != nil {
		first, _, _ := strings.Cut(fmt.Sprint(cause), "\n")
		*err = damaged(path, first)
	}
}

// checkLog reads the log's tree before raft and bbolt trust it: its keys follow each other
// without a gap, its first and last entry decode. It opens the file read-only, because
// opening for writing scans for free pages, and what that scan finds wrong it reports by a
// panic in a goroutine of its own, which nobody can recover.
func checkLog(path string, timeout time.Duration) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	// A file shorter than it says makes reads fault: a panic here, not the process's end.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverDamage(path, &err)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: timeout})
	if err != nil {
		return explainOpen(path, err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error { return checkBuckets(path, tx) })
}

func checkBuckets(path string, tx *bbolt.Tx) error {
	logs := tx.Bucket([]byte("logs"))
	if logs == nil || tx.Bucket([]byte("conf")) == nil {
		// A crash between making the file and its first commit: nothing was ever stored.
		return nil
	}
	var first, last uint64
	cursor := logs.Cursor()
	for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
		if len(key) != 8 {
			return damaged(path, "an entry has no index")
		}
		index := binary.BigEndian.Uint64(key)
		if first == 0 {
			first = index
		} else if index != last+1 {
			return damaged(path, fmt.Sprintf("entries %d to %d are missing", last+1, index-1))
		}
		last = index
	}
	return nil
}

// joinEnds makes sure that the log continues the newest snapshot and that its entries are
// what was stored; raft panics where this returns an error.
func (s *storage) joinEnds(path string) (err error) {
	defer recoverDamage(path, &err)
	first, err1 := s.bolt.FirstIndex()
	last, err2 := s.bolt.LastIndex()
	snapshots, err3 := s.snapshots.List()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	newest, err := s.readable(path, snapshots)
	if err != nil || last == 0 {
		return err
	}
	for index := first; index <= last; index++ {
		if err := s.logs.read(index, new(raft.Log)); err != nil {
			return damaged(path, fmt.Sprintf("entry %d cannot be read: %v", index, err))
		}
	}
	if first > newest.Index+1 {
		return damaged(path, fmt.Sprintf("entries %d to %d are missing", newest.Index+1, first-1))
	}
	if last < newest.Index {
		return s.dropCovered(newest.ID, first, last)
	}
	return nil
}

// readable returns the newest snapshot that can be read, which is the one that raft takes.
// If there are snapshots and none can be, raft's own error names neither file nor way out.
func (s *storage) readable(path string, snapshots []*raft.SnapshotMeta) (raft.SnapshotMeta, error) {
	var cause error
	for _, meta := range snapshots {
		_, state, err := s.snapshots.Open(meta.ID) // checks its checksum
		if err == nil {
			return *meta, state.Close()
		}
		if cause == nil {
			cause = fmt.Errorf("snapshot %s: %w", meta.ID, err)
		}
	}
	if cause != nil {
		return raft.SnapshotMeta{}, damaged(filepath.Dir(path), cause)
	}
	return raft.SnapshotMeta{}, nil
}

// dropCovered finishes an install of a snapshot that a crash interrupted before the log was
// deleted. The next entry would otherwise leave a gap between it and the old log.
func (s *storage) dropCovered(snapshot string, first, last uint64) error {
	_, state, err := s.snapshots.Open(snapshot)
	if err != nil {
		return fmt.Errorf("cannot read the newest snapshot: %w", err)
	}
	return errors.Join(state.Close(), s.logs.DeleteRange(first, last))
}

// openSnapshots opens the store of snapshots, without what a crash has left unfinished.
func openSnapshots(dir string, cfg *Config) (raft.SnapshotStore, error) {
	tidy := &tidySnapshots{dir: filepath.Join(dir, "snapshots")}
	if err := tidy.sweep(); err != nil {
		return nil, err
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, retainSnapshots, cfg.Logger.Named("snapshot"))
	if err != nil {
		return nil, fmt.Errorf("cannot open the snapshots: %w", err)
	}
	tidy.SnapshotStore = store
	if cfg.Faults != nil {
		tidy.SnapshotStore = &faultySnapshots{store, cfg.Faults}
	}
	return tidy, nil
}

// hasState says whether this node has ever been part of a cluster.
func (s *storage) hasState() (bool, error) {
	return raft.HasExistingState(s.logs, s.logs, s.snapshots)
}

func (s *storage) close() error {
	s.logs.close()
	if s.logs.poisoned.Load() != nil {
		// A write may still hang in the kernel, and bbolt's Close would wait for it. The lock
		// on the directory goes with the process.
		go func() {
			<-s.logs.ended
			_ = s.bolt.Close()
		}()
		return nil
	}
	<-s.logs.ended // it knows where the file is mapped
	return s.bolt.Close()
}
