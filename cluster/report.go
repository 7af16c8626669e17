package cluster

import (
	"context"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// reportTimeout bounds the wait for the members' reports. Who has not answered by then is
// shown as such.
const reportTimeout = time.Second

// Storage is what a node keeps on disk for raft.
type Storage struct {
	LogBytes      int64  // the file with the log; it does not shrink while it is open
	SnapshotBytes int64  // all snapshots that are kept
	FirstIndex    uint64 // of the log
	SnapshotIndex uint64 // of the newest snapshot, 0 if there is none
}

// Storage looks at the disk.
func (n *Node) Storage() Storage {
	dir := filepath.Join(n.cfg.DataDir, "raft")
	s := Storage{LogBytes: treeBytes(filepath.Join(dir, logFile)), SnapshotBytes: treeBytes(filepath.Join(dir, "snapshots"))}
	s.FirstIndex, _ = n.storage.logs.FirstIndex()
	if snapshots, err := n.storage.snapshots.List(); err == nil && len(snapshots) > 0 {
		s.SnapshotIndex = snapshots[0].Index
	}
	return s
}

// treeBytes adds up the files at and below path; what goes away meanwhile does not count.
func treeBytes(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// OnReport has f make what this node tells other nodes about itself. What is in it is no
// business of this package.
func (n *Node) OnReport(f func() []byte) { n.reporter.Store(&f) }

// Reported is what a member said about itself, or why it said nothing.
type Reported struct {
	Report []byte
	Err    error
}

// Reports asks all members, itself included, for their reports. It takes a second at most.
func (n *Node) Reports(ctx context.Context) map[string]Reported {
	return askAll(ctx, n, func(ctx context.Context, name, addr string) Reported {
		if name == n.cfg.Name {
			return Reported{Report: n.ownReport()}
		}
		reply, err := n.exchange(ctx, name, addr, askReport, nil)
		return Reported{Report: reply.payload, Err: err}
	})
}

// Applied returns the indexes that the other members have applied. Who does not answer
// within a second is missing.
func (n *Node) Applied(ctx context.Context) map[string]uint64 {
	indexes := make(map[string]uint64)
	for name, status := range askAll(ctx, n, func(ctx context.Context, name, addr string) *peerStatus {
		if name == n.cfg.Name {
			return nil
		}
		reply, err := n.exchange(ctx, name, addr, askStatus, nil)
		if err != nil {
			return nil
		}
		status, err := decodePeerStatus(reply.payload)
		if err != nil {
			return nil
		}
		return &status
	}) {
		if status != nil {
			indexes[name] = status.applied
		}
	}
	return indexes
}

// askAll calls ask for every member at once, and returns what they answered, by name.
func askAll[T any](ctx context.Context, n *Node, ask func(ctx context.Context, name, addr string) T) map[string]T {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := make(map[string]T)
	for _, m := range n.Members() {
		wg.Go(func() {
			answer := ask(ctx, m.Name, m.PeerAddr)
			mu.Lock()
			defer mu.Unlock()
			answers[m.Name] = answer
		})
	}
	wg.Wait()
	return answers
}

// ownReport is this node's report, empty if nobody makes one.
func (n *Node) ownReport() []byte {
	if f := n.reporter.Load(); f != nil {
		return (*f)()
	}
	return nil
}
