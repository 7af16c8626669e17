package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/fsm"
)

const (
	// diskInterval is how often free space is asked for: it heals that fast. In between, it
	// is asked for again after every diskStride bytes that were written to the log.
	diskInterval = time.Second
	diskStride   = 4 << 20

	// smallCommand is the size, encoded, up to which a command passes on a disk that is
	// low: leases, events, the status of a node or a pod.
	smallCommand = 16 << 10
)

// DiskReserve is how much of a file system is kept for what makes room: deletes and
// snapshots. The zero value keeps nothing.
type DiskReserve struct {
	Percent     float64 // of the file system's size
	Least, Most uint64  // bounds of the result, in bytes; no upper one if Most is 0
}

// Of returns the reserve of a file system with so many bytes in all.
func (r DiskReserve) Of(total uint64) uint64 {
	reserve := max(uint64(r.Percent/100*float64(total)), r.Least)
	if r.Most > 0 {
		reserve = min(reserve, r.Most)
	}
	return reserve
}

// roomKey marks a context, see MakesRoom.
type roomKey struct{}

// MakesRoom says of what is proposed with the context that it leads to a delete, and shall
// pass like one when the disk is full.
func MakesRoom(ctx context.Context) context.Context { return context.WithValue(ctx, roomKey{}, true) }

func makesRoom(ctx context.Context) bool { return ctx.Value(roomKey{}) != nil }

// DiskLevel says what is still written, by how much of the reserve is left.
type DiskLevel uint8

// The levels. Deletes pass on each of them, and what leads to one (MakesRoom): they are what
// makes room.
const (
	DiskOK    DiskLevel = iota
	DiskLow             // less is free than the reserve: no large commands
	DiskScant           // less than half of it: no creates either, small updates pass
	DiskFull            // less than an eighth of it: only deletes
)

// String is the level as logs and errors name it.
func (l DiskLevel) String() string { return [...]string{"ok", "low", "scant", "full"}[l] }

// Disk is what is known of the file system of the data directory.
type Disk struct {
	Free, Total, Reserve uint64 // bytes
	Level                DiskLevel
}

func (d Disk) judge() DiskLevel {
	switch {
	case d.Free >= d.Reserve:
		return DiskOK
	case d.Free >= d.Reserve/2:
		return DiskLow
	case d.Free >= d.Reserve/8:
		return DiskScant
	}
	return DiskFull
}

// disk watches the free space of the data directory, and says what may be written.
type disk struct {
	dir     string
	space   func(dir string) (free, total uint64, err error)
	reserve DiskReserve
	logger  hclog.Logger

	level  atomic.Uint32
	unseen atomic.Int64  // bytes written since the space was asked for
	wake   chan struct{} // holds a token when they are many

	mu    sync.Mutex
	known Disk // guarded by mu
}

func newDisk(cfg *Config, logger hclog.Logger) *disk {
	d := &disk{dir: cfg.DataDir, space: cfg.DiskSpace, reserve: cfg.DiskReserve, logger: logger, wake: make(chan struct{}, 1)}
	if d.space == nil {
		d.space = freeSpace
	}
	return d
}

// run looks at the disk until ctx ends.
func (d *disk) run(ctx context.Context) {
	ticker := time.NewTicker(diskInterval)
	defer ticker.Stop()
	for {
		d.look()
		select {
		case <-ticker.C:
		case <-d.wake:
		case <-ctx.Done():
			return
		}
	}
}

// look asks for the free space. If that cannot be known, nothing is refused for it.
func (d *disk) look() {
	d.unseen.Store(0)
	var now Disk
	free, total, err := d.space(d.dir)
	if err == nil {
		now = Disk{Free: free, Total: total, Reserve: d.reserve.Of(total)}
		now.Level = now.judge()
	}
	d.mu.Lock()
	before := d.known.Level
	d.known = now
	d.mu.Unlock()
	d.level.Store(uint32(now.Level))
	d.tell(before, now)
}

func (d *disk) tell(before DiskLevel, now Disk) {
	args := []any{"level", now.Level, "free", now.Free, "reserve", now.Reserve, "dir", d.dir}
	switch {
	case now.Level > before:
		d.logger.Warn("the disk is running full: writes are refused, the largest first; free space on it, or delete objects", args...)
	case now.Level < before:
		d.logger.Info("the disk has space again", args...)
	}
}

// wrote counts bytes that went to the log.
func (d *disk) wrote(n int) {
	if d.unseen.Add(int64(n)) < diskStride {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// now returns what was found last.
func (d *disk) now() Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// admits says whether a command of this kind and size, encoded, may be written now.
func (d *disk) admits(op fsm.Op, size int) bool {
	if op == fsm.OpDelete {
		return true
	}
	switch DiskLevel(d.level.Load()) {
	case DiskOK:
		return true
	case DiskLow:
		return size <= smallCommand
	case DiskScant:
		return size <= smallCommand && op == fsm.OpUpdate
	}
	return false
}

// admitsEncoded is admits for a command that came from another node. It costs nothing as
// long as all is well.
func (d *disk) admitsEncoded(data []byte) bool {
	return DiskLevel(d.level.Load()) == DiskOK || d.admits(fsm.OpOf(data), len(data))
}

// refusal is the error for a command that is not admitted here.
func (d *disk) refusal(node string) error {
	now := d.now()
	return fmt.Errorf("%w: node %s has %d MiB free of a reserve of %d MiB", ErrDiskFull, node, now.Free>>20, now.Reserve>>20)
}

// Disk returns what this node knows of the file system of its data directory.
func (n *Node) Disk() Disk { return n.disk.now() }
