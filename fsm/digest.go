package fsm

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
)

// Digest returns the SHA-256 of a canonical dump of the state: the number of
// entries and of remembered commands, the index of the newest evicted one, the
// offset to raft's indexes, and then both as in a snapshot. It covers all that decides how the next command
// is answered and all that a reader can see, but not the view's own index, as
// entries that changed nothing do not make two states different.
//
// Nodes that applied the same commands have the same digest. It reads
// everything, so call it on a kept view, away from the FSM goroutine.
func (v *View) Digest() [sha256.Size]byte {
	sum := sha256.New()
	w := bufio.NewWriterSize(sum, bufferSize)
	var counts []byte
	for _, n := range [...]uint64{uint64(v.Len()), uint64(len(v.ring)), v.evicted, v.offset} {
		counts = binary.BigEndian.AppendUint64(counts, n)
	}
	_, _ = w.Write(counts) // a hash never fails
	_ = v.writeBody(w)
	_ = w.Flush()
	return [sha256.Size]byte(sum.Sum(nil))
}
