package storage

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// part is an item as it stands in a list: a few bytes, and a piece of its own
// encoding.
type part struct {
	*encoding
	of         *object
	id         runtime.Identifier
	lead, body []byte
}

func writeParts(w io.Writer, head []byte, parts []part, tail []byte) error {
	buf := bytes.NewBuffer(append(make([]byte, 0, 2*writeSize), head...))
	for _, p := range parts {
		buf.Write(p.lead)
		buf.Write(p.body)
		if buf.Len() < writeSize {
			continue
		}
		if _, err := buf.WriteTo(w); err != nil {
			return err
		}
	}
	buf.Write(tail)
	_, err := buf.WriteTo(w)
	return err
}

// writeCompressed writes a gzip stream, of one member: some readers know no more.
// Leads are a few bytes, and stored.
func writeCompressed(w io.Writer, head []byte, parts []part, tail []byte) error {
	sum, size := crc32.NewIEEE(), 0
	count := func(data []byte) {
		sum.Write(data)
		size += len(data)
	}
	buf := bytes.NewBuffer(make([]byte, 0, 2*writeSize))
	buf.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}) // deflate, no time, fastest, any system
	store := func(data []byte) {
		count(data)
		for part := range chunks(data) {
			buf.Write(storedBlock(len(part)))
			buf.Write(part)
		}
	}
	store(head)
	for _, p := range parts {
		store(p.lead)
		count(p.body)
		buf.Write(p.deflate())
		if buf.Len() < writeSize {
			continue
		}
		if _, err := buf.WriteTo(w); err != nil {
			return err
		}
	}
	store(tail)
	buf.Write([]byte{3, 0}) // the last block, empty
	end := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
	buf.Write(binary.LittleEndian.AppendUint32(end, uint32(size)))
	_, err := buf.WriteTo(w)
	return err
}

// storedBlock begins a deflate block of n bytes as they are. It starts where a
// byte starts, as all parts here do.
func storedBlock(n int) []byte {
	head := binary.LittleEndian.AppendUint16([]byte{0}, uint16(n))
	return binary.LittleEndian.AppendUint16(head, ^uint16(n))
}

// chunks yields the parts of data that fit a stored block.
func chunks(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(len(data), 1<<16-1)
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// deflate returns the body compressed, and keeps that with the encoding.
func (p *part) deflate() []byte {
	p.deflating.Do(func() {
		p.deflated = deflate(p.body)
		p.of.store.Encodings.add(p.of, p.id, len(p.deflated))
	})
	return p.deflated
}
