package cluster

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"kontiki/cluster/pages"
)

// releaseEvery is after how many writes the pages of the file that they and their readers
// had in memory are released: some MiB.
const releaseEvery = 256

// deleteChunk bounds how many entries one transaction deletes from the front of the log:
// writes wait for it, as bbolt has one writer at a time.
const deleteChunk = 512

// logStore stands between raft and bbolt, and adds what raft does not do itself.
//
// Deadline: raft writes on its main goroutine, and its leader goes on sending heartbeats
// from others, so that a hung disk stops all writes without an election (hashicorp/raft#503).
// Here writes run on a goroutine of their own and fail after LogDeadline.
//
// Poison latch: after the first failed or overdue write, what is on disk is not known;
// after a failed fsync the kernel may even report success for data it dropped. So nothing
// is written any more, and the process is told to exit and look again from a fresh start.
//
// Monotonic: see IsMonotonic.
//
// Memory: bbolt reads its file through a mapping, and the kernel maps what lies around a page
// with it, so that in time all of a log of 200 MiB counts as memory of this process. Now and
// then these pages are released. That is the writing goroutine's, because bbolt maps the file
// anew only in a write.
type logStore struct {
	*raftboltdb.BoltStore
	deadline time.Duration
	faults   Faults
	report   func(error) // told of the first error, once

	path     string
	sealer   sealer // of run
	writes   chan write
	closing  chan struct{}
	ended    chan struct{} // closed by run
	closed   sync.Once
	poisoned atomic.Pointer[error]

	// stored, if set, is told of each successful append.
	stored func(took time.Duration, bytes int)

	// stores counts successful appends: the sign that replication makes progress.
	stores atomic.Uint64
}

// deadlineTicks are in which the time of a write is counted.
const deadlineTicks = 10

type write struct {
	do   func() error
	done chan error
}

var (
	_ raft.LogStore          = (*logStore)(nil)
	_ raft.StableStore       = (*logStore)(nil)
	_ raft.MonotonicLogStore = (*logStore)(nil)
)

func newLogStore(bolt *raftboltdb.BoltStore, path string, deadline time.Duration, faults Faults, report func(error)) *logStore {
	s := &logStore{
		BoltStore: bolt,
		path:      path,
		deadline:  deadline,
		faults:    faults,
		report:    report,
		writes:    make(chan write),
		closing:   make(chan struct{}),
		ended:     make(chan struct{}),
	}
	go s.run()
	return s
}

// run is the goroutine that writes. It outlives close if the disk hangs.
func (s *logStore) run() {
	defer close(s.ended)
	for done := 0; ; {
		select {
		case w := <-s.writes:
			w.done <- w.do()
			if done%releaseEvery == 0 { // the first one: what the start has read
				pages.ReleaseFile(s.path)
			}
			done++
		case <-s.closing:
			return
		}
	}
}

// close ends run, unless the disk hangs: ended tells.
func (s *logStore) close() { s.closed.Do(func() { close(s.closing) }) }

// IsMonotonic makes raft delete the whole log after it installed a snapshot, instead of
// keeping the last TrailingLogs entries of it.
//
// A follower that diverged before the snapshot (hashicorp/raft#697) otherwise keeps the
// entry at the snapshot's index that does not match the leader's, refuses what follows, is
// sent the snapshot again, and does so even after a restart. With an empty log the restart
// heals it, because then the snapshot itself is the entry to compare with; that restart is
// forced by the transport's count of installs. A follower that did not diverge loses
// nothing by it: what it deletes is in the snapshot, since the transport lets no snapshot
// through that is older than what this node has applied.
func (s *logStore) IsMonotonic() bool { return true }

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore: when it returns nil, the entries are on disk.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	start := time.Now()
	err := s.write(OpLogStore, func() error { return s.BoltStore.StoreLogs(s.sealer.seal(logs)) })
	if err != nil {
		return err
	}
	s.stores.Add(1)
	if s.stored != nil {
		s.stored(time.Since(start), payload(logs))
	}
	return nil
}

func payload(logs []*raft.Log) (bytes int) {
	for _, log := range logs {
		bytes += len(log.Data)
	}
	return bytes
}

// DeleteRange implements raft.LogStore.
//
// A suffix goes in one transaction, be it the conflicting end of a log or all of it: half of
// that deleted would be a gap, which raft does not survive at the next start. A prefix goes
// in chunks, in ascending order, so that appends get in between; after a crash half-way it
// is merely shorter than it might be.
func (s *logStore) DeleteRange(first, last uint64) error {
	end, err := s.BoltStore.LastIndex()
	if err != nil {
		return err
	}
	if last >= end {
		return s.deleteRange(first, last)
	}
	for ; first <= last; first += deleteChunk {
		if err := s.deleteRange(first, min(last, first+deleteChunk-1)); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

func (s *logStore) deleteRange(first, last uint64) error {
	return s.write(OpLogDelete, func() error {
		defer pages.ReleaseFile(s.path) // each page of the range has been read
		return s.BoltStore.DeleteRange(first, last)
	})
}

// Set implements raft.StableStore. Raft panics when it cannot store its term, and a panic
// is no way to report a full disk: the goroutine ends here instead, having answered no
// one, and the process exits by Node.Fatal.
func (s *logStore) Set(key, value []byte) error {
	err := s.write(OpStableSet, func() error { return s.BoltStore.Set(key, value) })
	if err != nil {
		runtime.Goexit()
	}
	return nil
}

// SetUint64 implements raft.StableStore.
func (s *logStore) SetUint64(key []byte, value uint64) error {
	err := s.write(OpStableSet, func() error { return s.BoltStore.SetUint64(key, value) })
	if err != nil {
		runtime.Goexit()
	}
	return nil
}

// write runs do on the writing goroutine, at most until the deadline.
func (s *logStore) write(op string, do func() error) error {
	if err := s.poisoned.Load(); err != nil {
		return *err
	}
	w := write{do: func() error { return s.faults.around(op, do) }, done: make(chan error, 1)}
	tick := time.NewTicker(s.deadline / deadlineTicks)
	defer tick.Stop()
	return s.await(op, w, tick.C)
}

// await counts ticks up to the deadline. A process that was stopped in the middle of a write,
// with its machine or without, gets one for all of that time, and the disk its chance.
func (s *logStore) await(op string, w write, tick <-chan time.Time) error {
	queue, closing, late := s.writes, s.closing, "the write before it has not returned"
	for left := deadlineTicks; left > 0; {
		select {
		case queue <- w:
			queue, closing, late = nil, nil, "the disk has not answered"
		case err := <-w.done:
			if err != nil {
				return s.poison(fmt.Errorf("%w: %s: %w%s", ErrDisk, op, err, advice(err)))
			}
			return nil
		case <-tick:
			left--
		case <-closing:
			return raft.ErrRaftShutdown
		}
	}
	return s.poison(fmt.Errorf("%w: %s: %s after %s", ErrDisk, op, late, s.deadline))
}

// advice is what to do, where a restart alone does not help.
func advice(err error) string {
	if errors.Is(err, syscall.ENOSPC) {
		return ": nothing is lost: free space on the disk of the data directory, then start this node again"
	}
	return ""
}

// poison latches the first error and reports it.
func (s *logStore) poison(err error) error {
	if s.poisoned.CompareAndSwap(nil, &err) {
		s.report(err)
	}
	return *s.poisoned.Load()
}
