package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"kontiki/fsm"
)

// A backup is a stamp and a snapshot of the FSM behind it:
//
//	magic, which names the format's version | length u32 | stamp, JSON | CRC-32C of all that u32
//	snapshot, which has checksums of its own
const (
	backupMagic = "KONTIKI BACKUP 1\n"

	// maxStamp bounds what is read of something that is no backup.
	maxStamp = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Stamp says what a backup is of.
type Stamp struct {
	Cluster string    `json:"cluster"` // its id
	Node    string    `json:"node"`    // that wrote it
	Version string    `json:"version"` // of that node's program
	Index   uint64    `json:"index"`   // the last that it contains
	Term    uint64    `json:"term"`    // in which it was taken
	Time    time.Time `json:"time"`    // when it was taken
}

// Backup is the state of a node at one moment, ready to be written.
type Backup struct {
	Stamp
	view *fsm.View
}

// Backup takes the state that this node has. It costs nothing and holds up nobody, also
// while it is written. Whether the state is fresh enough is the caller's to see to: see Ready.
func (n *Node) Backup() Backup {
	view := n.machine.View()
	return Backup{view: view, Stamp: Stamp{
		Cluster: n.cfg.Identity.ClusterID(), Node: n.cfg.Name, Version: n.cfg.Version,
		Index: view.Index(), Term: n.raft.CurrentTerm(), Time: time.Now().UTC().Truncate(time.Second),
	}}
}

// Write writes the backup as a file.
func (b Backup) Write(w io.Writer) error {
	stamp, err := json.Marshal(b.Stamp)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32([]byte(backupMagic), uint32(len(stamp)))
	head = append(head, stamp...)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := w.Write(head); err != nil {
		return err
	}
	return b.view.WriteSnapshot(w)
}

// ReadBackup reads a backup to its end, checks all that a restore will need, and shows each
// entry, in key order. What fn gathered counts only if there is no error.
func ReadBackup(r io.Reader, fn func(*fsm.Entry)) (Stamp, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	stamp, err := readStamp(buffered)
	if err != nil {
		return stamp, err
	}
	header, err := fsm.ScanSnapshot(buffered, fn)
	switch {
	case err != nil:
		return stamp, fmt.Errorf("%w: %w", ErrBadBackup, err)
	case header.Index != stamp.Index:
		return stamp, fmt.Errorf("%w: its stamp says index %d, its contents %d", ErrBadBackup, stamp.Index, header.Index)
	}
	return stamp, nil
}

// readStamp reads up to where the snapshot begins.
func readStamp(r io.Reader) (stamp Stamp, err error) {
	head := make([]byte, len(backupMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil && !truncated(err) {
		return stamp, fmt.Errorf("cannot read the backup: %w", err)
	}
	if !bytes.HasPrefix(head, []byte(backupMagic)) {
		return stamp, notThisBackup(head)
	}
	length := binary.BigEndian.Uint32(head[len(backupMagic):])
	if length > maxStamp {
		return stamp, fmt.Errorf("%w: a stamp of %d bytes", ErrBadBackup, length)
	}
	rest := make([]byte, length+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return stamp, fmt.Errorf("%w: truncated in its stamp", ErrBadBackup)
	}
	head = append(head, rest...)
	body, sum := head[:len(head)-4], head[len(head)-4:]
	if binary.BigEndian.Uint32(sum) != crc32.Checksum(body, castagnoli) {
		return stamp, fmt.Errorf("%w: the checksum of its stamp does not match", ErrBadBackup)
	}
	if err := json.Unmarshal(rest[:length], &stamp); err != nil {
		return stamp, fmt.Errorf("%w: its stamp: %w", ErrBadBackup, err)
	}
	return stamp, nil
}

func notThisBackup(head []byte) error {
	const family = "KONTIKI BACKUP "
	if bytes.HasPrefix(head, []byte(family)) {
		return fmt.Errorf("%w: it has a later format than this program knows: use the release of kontiki that wrote it, or a later one", ErrBadBackup)
	}
	return fmt.Errorf("%w: it was not written by kontiki snapshot save", ErrBadBackup)
}

func truncated(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
