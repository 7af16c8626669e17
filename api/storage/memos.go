package storage

import (
	"sync"
	"sync/atomic"

	"kontiki/fsm"
)

const (
	// maxReplaced and maxReplacedBytes bound which versions keep their decoded
	// object after they were replaced: those that watchers are likely to get to yet.
	maxReplaced      = 2048
	maxReplacedBytes = 8 << 20
	// DefaultDecodedBytes bounds what is decoded of the versions that are current,
	// enough for some 10,000 pods: what is answered in protobuf is not decoded.
	DefaultDecodedBytes = 128 << 20
)

// Memos bounds the memory that a node spends on decoded objects. It is an
// fsm.Observer, and the stores of a node share it.
//
// A version that was replaced loses its object when some more were replaced, and
// who comes to it later decodes it for himself. Of those that are current, all
// lose theirs when too much has been decoded: to know which were used least would
// cost every read, and decoding again costs little against the decoding that led
// here.
type Memos struct {
	limit int64

	mu       sync.Mutex
	replaced []*fsm.Entry // guarded by mu; oldest first
	bytes    int          // guarded by mu; of their values

	decoded  atomic.Int64 // bytes since the last drop
	dropping atomic.Bool
}

var _ fsm.Observer = (*Memos)(nil)

// NewMemos makes a bound for the stores of one node.
func NewMemos(limit int64) *Memos { return &Memos{limit: limit} }

// OnApply implements fsm.Observer.
func (m *Memos) OnApply(_ uint64, events []fsm.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range events {
		if event.Old != nil {
			m.replaced, m.bytes = append(m.replaced, event.Old), m.bytes+len(event.Old.Value)
		}
	}
	for len(m.replaced) > maxReplaced || m.bytes > maxReplacedBytes {
		oldest := m.replaced[0]
		m.replaced[0] = nil
		m.replaced, m.bytes = m.replaced[1:], m.bytes-len(oldest.Value)
		oldest.SealMemo()
	}
}

// OnRestore implements fsm.Observer: all versions are new.
func (m *Memos) OnRestore(uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaced, m.bytes = nil, 0
}

// add counts an object of so many bytes, and drops all that are current in view
// when there are too many.
func (m *Memos) add(size int64, view func() *fsm.View) {
	if m == nil || m.decoded.Add(size) < m.limit || !m.dropping.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer m.dropping.Store(false)
		m.decoded.Store(0)
		view().Ascend("", "", func(entry *fsm.Entry) bool {
			entry.DropMemo()
			return true
		})
	}()
}

// objectBytes is what an object takes in memory that has not been decoded.
const objectBytes = 256

// decodedBytes is what an object takes in memory, as measured with pods.
func decodedBytes(stored int) int64 { return 1<<10 + 3*int64(stored) }
