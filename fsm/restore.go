package fsm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ReadSnapshotHeader reads and checks the header of a snapshot, and no more.
func ReadSnapshotHeader(r io.Reader) (Header, error) {
	return (&snapshotReader{r: r}).header()
}

// VerifySnapshot reads a snapshot to its end and checks all that Restore checks.
func VerifySnapshot(r io.Reader) (Header, error) {
	return ScanSnapshot(r, func(*Entry) {})
}

// ScanSnapshot is VerifySnapshot that shows each entry, in key order. What fn
// gathered counts only if no error is returned: the checksum comes last.
func ScanSnapshot(r io.Reader, fn func(*Entry)) (Header, error) {
	m := newMemory(rememberLimit)
	return scan(r, &m, fn)
}

// load fills an empty state from a snapshot. After an error the state is rubbish.
func (s *state) load(r io.Reader) (Header, error) {
	header, err := scan(r, &s.memory, func(e *Entry) {
		s.append(e)
	})
	s.offset = header.Offset
	return header, err
}

// append adds an entry whose key is greater than all others.
func (s *state) append(e *Entry) {
	s.entries.Load(e)
	if e.Expires != 0 {
		s.expiring.Set(e)
	}
}

func scan(r io.Reader, m *memory, fn func(*Entry)) (Header, error) {
	s := &snapshotReader{r: bufio.NewReaderSize(r, bufferSize)}
	h, err := s.header()
	if err == nil {
		err = s.remembered(h, m)
	}
	if err == nil {
		err = s.entries(h, fn)
	}
	if err == nil {
		err = s.trailer()
	}
	return h, err
}

// snapshotReader reads a snapshot and keeps its checksum.
type snapshotReader struct {
	r   io.Reader
	sum uint32
	buf []byte // what take returns
}

// take returns the next n bytes, valid until the next call.
func (s *snapshotReader) take(n int, what string) ([]byte, error) {
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	b := s.buf[:n]
	if _, err := io.ReadFull(s.r, b); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("snapshot: truncated in the %s", what)
	} else if err != nil {
		return nil, fmt.Errorf("snapshot: read the %s: %w", what, err)
	}
	s.sum = crc32.Update(s.sum, castagnoli, b)
	return b, nil
}

func (s *snapshotReader) header() (Header, error) {
	b, err := s.take(preambleSize, "header")
	if err != nil {
		return Header{}, err
	}
	if !bytes.HasPrefix(b, []byte(snapshotMagic)) {
		return Header{}, errors.New("snapshot: not a kontiki snapshot")
	}
	h := Header{Version: binary.BigEndian.Uint32(b[len(snapshotMagic):])}
	if h.Version == 0 || h.Version > snapshotVersion { // before the checksum, which a later version may place elsewhere
		return Header{}, fmt.Errorf("snapshot: format version %d, this program knows 1 to %d: use the release of kontiki that wrote it, or a later one", h.Version, snapshotVersion)
	}
	numbers := h.numbers()
	if b, err = s.take(8*len(numbers)+4, "header"); err != nil {
		return Header{}, err
	}
	for i, n := range numbers {
		*n = binary.BigEndian.Uint64(b[8*i:])
	}
	if again := h.append(nil); !bytes.Equal(again[preambleSize:], b) {
		return Header{}, errors.New("snapshot: header checksum does not match")
	}
	if h.Offset > h.Index {
		return Header{}, fmt.Errorf("snapshot: offset %d is past its index %d", h.Offset, h.Index)
	}
	return h, nil
}

func (s *snapshotReader) remembered(h Header, m *memory) error {
	if h.Remembered > uint64(m.limit) {
		return fmt.Errorf("snapshot: %d remembered commands, at most %d are allowed", h.Remembered, m.limit)
	}
	if h.Evicted > h.Index {
		return fmt.Errorf("snapshot: evicted index %d is past its index %d", h.Evicted, h.Index)
	}
	m.evicted = h.Evicted
	last := h.Evicted
	for range h.Remembered {
		b, err := s.take(rememberedSize, "remembered commands")
		if err != nil {
			return err
		}
		r := remembered{
			id:    ID(b[:16]),
			index: binary.BigEndian.Uint64(b[16:]),
			code:  Code(b[24]),
		}
		_, twice := m.find(r.id)
		if twice || r.index <= last || r.index > h.Index || r.code >= Forgotten {
			return fmt.Errorf("snapshot: impossible remembered command %x with index %d, %s", r.id, r.index, r.code)
		}
		m.add(r)
		last = r.index
	}
	return nil
}

func (s *snapshotReader) entries(h Header, fn func(*Entry)) error {
	last := ""
	for i := range h.Entries {
		e, err := s.entry()
		if err != nil {
			return fmt.Errorf("%w (entry %d of %d)", err, i+1, h.Entries)
		}
		switch {
		case e.Key <= last:
			return fmt.Errorf("snapshot: key %q is out of order after %q", e.Key, last)
		case e.CreateIndex == 0 || e.CreateIndex > e.ModIndex || e.ModIndex > h.Index:
			return fmt.Errorf("snapshot: key %q has impossible indexes %d, %d", e.Key, e.CreateIndex, e.ModIndex)
		}
		last = e.Key
		fn(e)
	}
	return nil
}

func (s *snapshotReader) entry() (*Entry, error) {
	b, err := s.take(4, "entries")
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(b)
	if size > maxRecord {
		return nil, fmt.Errorf("snapshot: record of %d bytes, at most %d are allowed", size, maxRecord)
	}
	if b, err = s.take(int(size), "entries"); err != nil {
		return nil, err
	}
	r := reader{b: b}
	e := readEntry(&r)
	if err = r.end(); err == nil {
		err = validKey(e.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot: record: %w", err)
	}
	e.Value = bytes.Clone(e.Value) // out of the shared buffer
	return e, nil
}

func (s *snapshotReader) trailer() error {
	sum := s.sum
	b, err := s.take(4, "trailer")
	switch {
	case err != nil:
		return err
	case binary.BigEndian.Uint32(b) != sum:
		return errors.New("snapshot: checksum does not match")
	}
	if _, err = io.ReadFull(s.r, b[:1]); err != io.EOF {
		return errors.New("snapshot: bytes after the end")
	}
	return nil
}
