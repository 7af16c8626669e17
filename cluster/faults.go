package cluster

import "github.com/hashicorp/raft"

// Faults is asked before and after each labelled operation (Op... constants). An error fails
// it; to simulate a slow or hung disk, it blocks.
type Faults func(op string) error

// Labels of the operations that Config.Faults can fail. OpDone behind a label is the same
// operation once the disk has it and nobody knows yet: an error there is a success that is
// reported as a failure, as EIO from fsync can be.
const (
	OpLogStore       = "log.store"
	OpLogDelete      = "log.delete"
	OpStableSet      = "stable.set"
	OpSnapshotCreate = "snapshot.create"
	OpSnapshotWrite  = "snapshot.write" // each piece, of the node's own or of one that the leader sends
	OpSnapshotClose  = "snapshot.close" // renames it: done is between that and the log's truncation
	OpCompactRename  = "compact.rename" // just before a compacted log takes the place of the old one

	OpDone = ".done"
)

// around wraps an operation in its labels.
func (f Faults) around(op string, do func() error) error {
	if f == nil {
		return do()
	}
	if err := f(op); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return f(op + OpDone)
}

// faultySnapshots labels what a snapshot store writes.
type faultySnapshots struct {
	raft.SnapshotStore
	faults Faults
}

// Create implements raft.SnapshotStore.
func (s *faultySnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, transport raft.Transport) (sink raft.SnapshotSink, err error) {
	err = s.faults.around(OpSnapshotCreate, func() error {
		sink, err = s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultySink{sink, s.faults}, nil
}

type faultySink struct {
	raft.SnapshotSink
	faults Faults
}

// Write implements raft.SnapshotSink.
func (s *faultySink) Write(b []byte) (n int, err error) {
	err = s.faults.around(OpSnapshotWrite, func() error {
		n, err = s.SnapshotSink.Write(b)
		return err
	})
	return n, err
}

// Close implements raft.SnapshotSink.
func (s *faultySink) Close() error { return s.faults.around(OpSnapshotClose, s.SnapshotSink.Close) }
