package fsm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"
)

// A snapshot file, all integers big-endian:
//
//	header      magic, then version (4 bytes), index, entries, remembered,
//	            evicted, offset (8 each), CRC of the header so far (4);
//	            version 1 has no offset: it is 0
//	remembered  id (16), index (8), code (1), in index order
//	entries     length (4) and an encoded entry, in key order
//	trailer     CRC of everything before it (4)
//
// The checksum is CRC-32C: it finds every burst of up to 32 flipped bits, at
// memory speed, so it does not slow a restart. It guards against accidents. A
// hash against malice would have to be kept elsewhere to be of use.
const (
	snapshotMagic   = "KONTIKI\n"
	snapshotVersion = 2
	preambleSize    = len(snapshotMagic) + 4 // what every version begins with
	headerSize      = preambleSize + 5*8 + 4
	rememberedSize  = len(ID{}) + 8 + 1
	maxRecord       = MaxKey + MaxValue + 5*binary.MaxVarintLen64
	bufferSize      = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the start of a snapshot file.
type Header struct {
	Version    uint32
	Index      uint64 // of the last log entry it contains
	Entries    uint64 // how many
	Remembered uint64 // how many remembered commands
	Evicted    uint64 // index of the newest command no longer remembered
	Offset     uint64 // an entry's index is raft's plus this
}

func (h Header) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, snapshotMagic...)
	dst = binary.BigEndian.AppendUint32(dst, h.Version)
	for _, n := range h.numbers() {
		dst = binary.BigEndian.AppendUint64(dst, *n)
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// numbers are the fields after the version, in the order of the file.
func (h *Header) numbers() []*uint64 {
	all := []*uint64{&h.Index, &h.Entries, &h.Remembered, &h.Evicted, &h.Offset}
	if h.Version == 1 {
		return all[:4]
	}
	return all
}

// snapshot is a view that raft may persist.
type snapshot struct{ view *View }

// Persist writes the view to sink, on raft's snapshot goroutine.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.view.WriteSnapshot(sink); err != nil {
		_ = sink.Cancel() // the first error is the one that tells
		return err
	}
	return sink.Close()
}

// Release has nothing to release: the garbage collector frees the view.
func (s *snapshot) Release() {}

// WriteSnapshot writes the view as a snapshot file. It serves raft, and backups
// of a node that need not ask raft.
func (v *View) WriteSnapshot(w io.Writer) error {
	if v.rewound {
		return errors.New("snapshot: a rewound view lacks the remembered commands")
	}
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), bufferSize)
	header := Header{snapshotVersion, v.index, uint64(v.Len()), uint64(len(v.ring)), v.evicted, v.offset}
	_, err := buf.Write(header.append(nil))
	if err == nil {
		err = v.writeBody(buf)
	}
	if err == nil {
		err = buf.Flush() // completes the sum
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	if err != nil {
		return fmt.Errorf("snapshot: write: %w", err)
	}
	return nil
}

// writeBody writes the remembered commands and the entries.
func (v *View) writeBody(w io.Writer) error {
	var record []byte
	for _, r := range v.ring {
		record = append(record[:0], r.id[:]...)
		record = binary.BigEndian.AppendUint64(record, r.index)
		if _, err := w.Write(append(record, byte(r.code))); err != nil {
			return err
		}
	}
	var err error
	v.entries.Scan(func(e *Entry) bool {
		record = appendEntry(append(record[:0], 0, 0, 0, 0), e)
		binary.BigEndian.PutUint32(record, uint32(len(record)-4))
		_, err = w.Write(record)
		return err == nil
	})
	return err
}
