package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"
)

// tidySnapshots removes what unfinished snapshots leave. Raft's sinks leave theirs when the
// disk is full, in the moment in which every byte of it is missing: the next snapshot, which
// would be the cure, then fails for want of space too.
type tidySnapshots struct {
	raft.SnapshotStore
	dir string

	mu   sync.Mutex
	open int // sinks; raft may take a snapshot while another one arrives
}

// Create implements raft.SnapshotStore.
func (s *tidySnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, transport raft.Transport) (raft.SnapshotSink, error) {
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		return nil, errors.Join(err, s.ended())
	}
	return &tidySink{SnapshotSink: sink, ended: sync.OnceValue(s.ended)}, nil
}

// ended counts a sink off. With none open, whatever is unfinished is left over.
func (s *tidySnapshots) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open > 0 {
		return nil
	}
	return s.sweep()
}

// sweep removes unfinished snapshots. The rename that completes one did not happen, so
// nobody has relied on it. A sink that failed may still hold its file open, which would keep
// the space: the file is emptied first.
func (s *tidySnapshots) sweep() error {
	leftovers, _ := filepath.Glob(filepath.Join(s.dir, "*.tmp"))
	for _, path := range leftovers {
		err := os.Truncate(filepath.Join(path, "state.bin"), 0)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err := errors.Join(err, os.RemoveAll(path)); err != nil {
			return fmt.Errorf("cannot remove an unfinished snapshot: %w", err)
		}
	}
	return nil
}

type tidySink struct {
	raft.SnapshotSink
	ended func() error
}

// Close implements raft.SnapshotSink.
func (s *tidySink) Close() error { return errors.Join(s.SnapshotSink.Close(), s.ended()) }

// Cancel implements raft.SnapshotSink.
func (s *tidySink) Cancel() error { return errors.Join(s.SnapshotSink.Cancel(), s.ended()) }
