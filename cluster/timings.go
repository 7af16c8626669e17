package cluster

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// The bounds of a Histogram's buckets are powers of two of a microsecond, from 16 µs, which
// is a batch applied, to 33 s, which is more than anything here waits.
const (
	firstBucket = 4
	lastBucket  = 25
	buckets     = lastBucket - firstBucket + 1
)

// Histogram counts durations. It stands on the way of every command, so that to observe is
// two atomic additions: no lock, no memory. The zero value is empty.
type Histogram struct {
	counts [buckets + 1]atomic.Uint64 // the last one is of what is longer than all bounds
	sum    atomic.Int64               // nanoseconds
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	micros := uint64(max(0, d-1)) / uint64(time.Microsecond)
	h.counts[min(max(bits.Len64(micros)-firstBucket, 0), buckets)].Add(1)
	h.sum.Add(int64(d))
}

// since is Observe for a defer.
func (h *Histogram) since(start time.Time) { h.Observe(time.Since(start)) }

// Distribution is what a Histogram has counted, in the form in which Prometheus takes it.
type Distribution struct {
	Count   uint64
	Seconds float64            // sum of all
	Buckets map[float64]uint64 // how many took at most so many seconds
}

// Distribution returns what has been counted. Observations that come meanwhile may be in
// one of its numbers and not in another.
func (h *Histogram) Distribution() Distribution {
	d := Distribution{Seconds: time.Duration(h.sum.Load()).Seconds(), Buckets: make(map[float64]uint64, buckets)}
	for i := range buckets {
		d.Count += h.counts[i].Load()
		d.Buckets[(time.Microsecond << (firstBucket + i)).Seconds()] = d.Count
	}
	d.Count += h.counts[buckets].Load()
	return d
}

// Timings is how long the steps of commands and reads have taken on this node.
type Timings struct {
	Propose   Histogram // Propose, until the command is applied here, with all its attempts
	Forward   Histogram // a follower's question to the leader, until its answer
	ReadIndex Histogram // ReadIndex, with all its attempts
	Apply     Histogram // a batch of entries, by the state machine
	LogStore  Histogram // a batch of entries, until they are on disk
	Snapshot  Histogram // a snapshot, from the view to the disk
}

// Timings returns the node's own: they go on counting.
func (n *Node) Timings() *Timings { return &n.timings }

// timedFSM is the state machine as raft sees it.
type timedFSM struct {
	*fsm.FSM
	timings *Timings
}

var _ raft.BatchingFSM = timedFSM{}

// ApplyBatch implements raft.BatchingFSM.
func (t timedFSM) ApplyBatch(logs []*raft.Log) []any {
	defer t.timings.Apply.since(time.Now())
	return t.FSM.ApplyBatch(logs)
}

// Snapshot implements raft.FSM.
func (t timedFSM) Snapshot() (raft.FSMSnapshot, error) {
	s, err := t.FSM.Snapshot()
	return timedSnapshot{s, t.timings}, err
}

type timedSnapshot struct {
	raft.FSMSnapshot
	timings *Timings
}

// Persist implements raft.FSMSnapshot.
func (t timedSnapshot) Persist(sink raft.SnapshotSink) error {
	defer t.timings.Snapshot.since(time.Now())
	return t.FSMSnapshot.Persist(sink)
}
