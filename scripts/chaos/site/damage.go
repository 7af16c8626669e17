package site

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a server takes of its machine.
type Usage struct {
	Goroutines  int
	MemoryBytes int64 // resident, its own
	DiskBytes   int64
}

// Max has the larger of each.
func (u Usage) Max(v Usage) Usage {
	return Usage{max(u.Goroutines, v.Goroutines), max(u.MemoryBytes, v.MemoryBytes), max(u.DiskBytes, v.DiskBytes)}
}

func (u Usage) String() string {
	return fmt.Sprintf("%d goroutines, %d MB memory, %d MB disk", u.Goroutines, u.MemoryBytes>>20, u.DiskBytes>>20)
}

// Usage asks the server and the kernel.
func (n *Node) Usage() (u Usage, err error) {
	answer, err := n.Fault("goroutines")
	if err != nil {
		return u, err
	}
	if u.Goroutines, err = strconv.Atoi(answer); err != nil {
		return u, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Process().Pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			if _, err := fmt.Sscan(rest, &u.MemoryBytes); err != nil {
				return u, err
			}
			u.MemoryBytes <<= 10
		}
	}
	err = filepath.WalkDir(n.Data(), func(_ string, entry fs.DirEntry, err error) error {
		if info, infoErr := entry.Info(); err == nil && infoErr == nil && !entry.IsDir() {
			u.DiskBytes += info.Size()
		}
		return nil // snapshots come and go
	})
	return u, err
}

// SaveDisk copies the data directory of a stopped server aside, RestoreDisk brings that back.
func (n *Node) SaveDisk() error {
	if err := os.RemoveAll(n.Machine.Path("saved")); err != nil {
		return err
	}
	return os.CopyFS(n.Machine.Path("saved"), os.DirFS(n.Data()))
}

// RestoreDisk replaces the data directory by what SaveDisk or TakeDisk put aside.
func (n *Node) RestoreDisk() error {
	if err := os.RemoveAll(n.Data()); err != nil {
		return err
	}
	return os.Rename(n.Machine.Path("saved"), n.Data())
}

// TakeDisk leaves a stopped server without a data directory: that one is aside.
func (n *Node) TakeDisk() error {
	if err := os.RemoveAll(n.Machine.Path("saved")); err != nil {
		return err
	}
	return os.Rename(n.Data(), n.Machine.Path("saved"))
}

// RaftLog names the file with the log of raft; empty if there is none.
func (n *Node) RaftLog() string { return n.find("raft.db") }

// Snapshot names the newest snapshot's file of state; empty if there is none.
func (n *Node) Snapshot() string { return n.find("state.bin") }

func (n *Node) find(name string) (found string) {
	var newest time.Time
	_ = filepath.WalkDir(n.Data(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != name || strings.Contains(path, ".tmp") {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(newest) {
			found, newest = path, info.ModTime()
		}
		return nil
	})
	return found
}

// pageBytes is what file systems and bbolt write at once.
const pageBytes = 4096

// used is how much of a file has been written to: a log is made larger than it is.
func used(content []byte) int { return len(bytes.TrimRight(content, "\x00")) }

// Flip changes one bit of a file, at a share of what is used of it: in the next page that is
// not empty, where somebody may look.
func Flip(path string, at float64, bit int) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end := used(content)
	if end == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	place := int(at * float64(end-1))
	for place+pageBytes < end && used(content[place:place+pageBytes]) == 0 {
		place += pageBytes
	}
	content[place] ^= 1 << (bit % 8)
	return os.WriteFile(path, content, 0o600)
}

// Tear cuts the end off what is used of a file, as a crash of a machine with an unsafe disk does.
func Tear(path string, keep float64) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, int64(keep*float64(used(content))))
}
