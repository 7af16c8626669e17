package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"kontiki/fsm"
)

// A restore goes through the log like any write. The file is put into the state in pieces,
// below a key prefix that no reader looks at; then one command puts its contents in the
// place of everything. So every node changes over at the same entry, and only when that
// entry is committed: a leader that dies before leaves the old state everywhere, one that
// dies after the new one. See DESIGN.md for why this is not raft.Restore.
const (
	// pieceBytes is small because the log cache counts entries, not bytes.
	pieceBytes = 128 << 10

	// stagedFor is when a leader deletes pieces that nobody came back to: their node died.
	stagedFor = time.Hour

	// stagers is how many pieces are on their way at once; they share log batches.
	stagers = 16
)

// Restored says what a restore has done.
type Restored struct {
	Stamp
	At      uint64 `json:"at"`      // the index at which the state was replaced
	Objects int    `json:"objects"` // in the new state
}

// Restore replaces the state of the whole cluster by a backup. It works on any node. The
// backup is read and checked to its end before the first byte of it is proposed, and nothing
// is visible of it before the last. With any error but ErrUnknownOutcome and ErrBehind the
// old state is in place.
func (n *Node) Restore(ctx context.Context, r io.Reader) (Restored, error) {
	file, err := n.spool(r)
	if err != nil {
		return Restored{}, err
	}
	defer file.Close()
	restored, size := Restored{}, int64(0)
	if restored.Stamp, err = ReadBackup(file, func(*fsm.Entry) { restored.Objects++ }); err == nil {
		size, err = seekSnapshot(file)
	}
	if err != nil {
		return restored, err
	}
	prefix := fmt.Sprintf("%s%s/", fsm.StagingPrefix, rand.Text())
	pieces := int((size + pieceBytes - 1) / pieceBytes)
	start, _ := file.Seek(0, io.SeekCurrent)
	n.logger.Info("restoring a backup", "of", restored.Time, "cluster", restored.Cluster, "index", restored.Index, "objects", restored.Objects)
	err = inParallel(ctx, pieces, func(ctx context.Context, i int) error {
		return n.stage(ctx, prefix, i, io.NewSectionReader(file, start, size))
	})
	if err == nil {
		restored.At, err = n.replace(ctx, prefix)
	}
	if err != nil && !errors.Is(err, ErrBehind) {
		n.unstage(prefix, pieces)
	}
	return restored, err
}

// spool keeps r in a file without a name, which is gone with the process.
func (n *Node) spool(r io.Reader) (*os.File, error) {
	file, err := os.CreateTemp(n.cfg.DataDir, "restore-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("cannot keep the backup while it is checked: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = io.Copy(&sparing{Writer: file, node: n}, r)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot keep the backup while it is checked: %w", err), file.Close())
	}
	return file, nil
}

// sparing writes as long as the disk has its reserve: a backup on its way must not take the
// last room from the log.
type sparing struct {
	io.Writer
	node   *Node
	unseen int // bytes since it looked
}

// Write implements io.Writer.
func (s *sparing) Write(p []byte) (int, error) {
	if s.unseen += len(p); s.unseen >= diskStride {
		s.node.disk.look()
		s.unseen = 0
	}
	if s.node.Disk().Level != DiskOK {
		return 0, s.node.disk.refusal(s.node.cfg.Name)
	}
	return s.Writer.Write(p)
}

// seekSnapshot goes to where the snapshot begins and returns its size.
func seekSnapshot(file *os.File) (int64, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := readStamp(file); err != nil {
		return 0, err
	}
	start, err := file.Seek(0, io.SeekCurrent)
	return end - start, err
}

// stage proposes piece i of the snapshot.
func (n *Node) stage(ctx context.Context, prefix string, i int, snapshot *io.SectionReader) error {
	offset := int64(i) * pieceBytes
	piece := make([]byte, min(pieceBytes, snapshot.Size()-offset))
	if _, err := snapshot.ReadAt(piece, offset); err != nil {
		return fmt.Errorf("cannot read the backup again: %w", err)
	}
	result, err := n.Propose(ctx, fsm.Command{
		Op: fsm.OpCreate, Key: pieceKey(prefix, i), Value: piece, Expires: time.Now().Add(stagedFor).Unix(),
	})
	switch {
	case errors.Is(err, ErrUnknownOutcome): // of a piece: the state is untouched
		return fmt.Errorf("%w: %v", ErrNoLeader, err)
	case errors.Is(err, ErrBehind) || err == nil && result.Code == fsm.OK:
		return nil
	case err == nil:
		return fmt.Errorf("%w: a piece of it: %s", ErrRestoreLost, result.Code)
	}
	return err
}

func pieceKey(prefix string, i int) string { return fmt.Sprintf("%s%08d", prefix, i) }

// replace is the command that makes the staged state the state.
func (n *Node) replace(ctx context.Context, prefix string) (uint64, error) {
	result, err := n.Propose(ctx, fsm.Command{Op: fsm.OpRestore, Key: prefix})
	if err == nil && result.Code != fsm.OK {
		err = ErrRestoreLost
	}
	return result.Index, err
}

// unstage deletes the pieces of a restore that failed. What it does not get to, expires.
func (n *Node) unstage(prefix string, pieces int) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.RetryFor)
	defer cancel()
	err := inParallel(ctx, pieces, func(ctx context.Context, i int) error {
		_, err := n.Propose(ctx, fsm.Command{Op: fsm.OpDelete, Key: pieceKey(prefix, i)})
		return err
	})
	if err != nil {
		n.logger.Warn("the remains of a failed restore stay until they expire", "after", stagedFor, "error", err)
	}
}

// inParallel calls f for 0 to count-1, a few at a time, until the first error.
func inParallel(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	tokens := make(chan struct{}, stagers)
	for i := 0; i < count && ctx.Err() == nil; i++ {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
