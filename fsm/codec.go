package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errShort    = errors.New("input ends early")
	errPadded   = errors.New("padded or oversized number")
	errTrailing = errors.New("trailing bytes")
)

// reader takes fields from the front of b. The first failure sticks, so a
// decoder reads straight through and looks at err once.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.b = err, nil
	}
}

// take returns the next n bytes, aliasing the input. Its capacity is cut, so an
// append by the caller cannot overwrite what follows.
func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.fail(errShort)
		return nil
	}
	field := r.b[:n:n]
	r.b = r.b[n:]
	return field
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uvarint accepts the shortest form only, so that equal values have equal bytes.
func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case n == 0:
		r.fail(errShort)
		return 0
	case n < 0 || n > 1 && r.b[n-1] == 0:
		r.fail(errPadded)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1) // the zigzag of binary.AppendVarint
}

// bytes reads a length of at most limit and that many bytes; none give nil.
func (r *reader) bytes(limit uint64) []byte {
	n := r.uvarint()
	if n > limit {
		r.fail(fmt.Errorf("field of %d bytes, at most %d are allowed", n, limit))
	}
	if r.err != nil || n == 0 {
		return nil
	}
	return r.take(n)
}

// end reports the first failure, or input that nobody asked for.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		return errTrailing
	}
	return r.err
}

func appendBytes[T string | []byte](dst []byte, field T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(field)))
	return append(dst, field...)
}
