package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// id makes the id of proposal n.
func id(n uint64) (id ID) {
	binary.BigEndian.PutUint64(id[:], n+1)
	return id
}

func entryLog(index uint64, c Command) *raft.Log {
	return &raft.Log{Index: index, Type: raft.LogCommand, Data: c.Append(nil)}
}

// apply applies one command at the next index, with an id and a base of its own
// unless it has them.
func apply(f *FSM, c Command) Result {
	index := f.Index() + 1
	if c.ID == (ID{}) {
		c.ID, c.Base = id(1<<32+index), index-1 // small numbers are for tests
	}
	return f.Apply(entryLog(index, c)).(Result)
}

func create(key, value string) Command {
	return Command{Op: OpCreate, Key: key, Value: []byte(value)}
}

func update(key, value string, expect uint64) Command {
	return Command{Op: OpUpdate, Key: key, Value: []byte(value), Expect: expect}
}

func remove(key string, expect uint64) Command {
	return Command{Op: OpDelete, Key: key, Expect: expect}
}

// dump writes a view as text, one line an entry, to compare and to read.
func dump(v *View) string {
	var b bytes.Buffer
	v.Ascend("", "", func(e *Entry) bool {
		fmt.Fprintf(&b, "%s=%s c%d m%d x%d\n", e.Key, e.Value, e.CreateIndex, e.ModIndex, e.Expires)
		return true
	})
	v.AscendExpires(1<<62, func(e *Entry) bool {
		fmt.Fprintf(&b, "%d %s\n", e.Expires, e.Key)
		return true
	})
	return b.String()
}

// scenario makes random logs. Print its seed when a test fails.
type scenario struct {
	rand *rand.Rand
	keys int
	sent []Command // to be sent again
}

func newScenario(t testing.TB, seed uint64, keys int) *scenario {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return &scenario{rand: rand.New(rand.NewPCG(seed, 0)), keys: keys}
}

// command is a random command that meets its preconditions now and then. One in
// eight is one sent before; some have an old base.
func (s *scenario) command(index uint64) Command {
	if len(s.sent) > 0 && s.rand.IntN(8) == 0 {
		return s.sent[s.rand.IntN(len(s.sent))]
	}
	c := Command{
		Op:   Op(1 + s.rand.IntN(3)),
		ID:   id(s.rand.Uint64()),
		Base: index - min(index, s.rand.Uint64N(20)),
		Key:  fmt.Sprintf("/core/%s/%03d", []string{"pods", "nodes"}[s.rand.IntN(2)], s.rand.IntN(s.keys)),
	}
	if c.Op != OpCreate && s.rand.IntN(2) == 0 {
		c.Expect = index - min(index-1, s.rand.Uint64N(uint64(s.keys)))
	}
	if c.Op != OpDelete {
		c.Value = fmt.Appendf(nil, "v%d", index)
		c.Expires = int64(max(0, s.rand.IntN(20)-10))
	}
	s.sent = append(s.sent, c)
	return c
}

// log is n random entries, with configuration entries and holes among them.
func (s *scenario) log(n int) (logs []*raft.Log) {
	index := uint64(0)
	for range n {
		index += 1 + s.rand.Uint64N(10)/9
		if s.rand.IntN(16) == 0 {
			logs = append(logs, &raft.Log{Index: index, Type: raft.LogConfiguration})
			continue
		}
		logs = append(logs, entryLog(index, s.command(index)))
	}
	return logs
}

// feed applies logs in batches of random size up to most.
func (s *scenario) feed(f *FSM, logs []*raft.Log, most int) (responses []any) {
	for len(logs) > 0 {
		n := min(len(logs), 1+s.rand.IntN(most))
		responses = append(responses, f.ApplyBatch(logs[:n])...)
		logs = logs[n:]
	}
	return responses
}

// recorder is an Observer that keeps what it is told.
type recorder struct {
	events   []Event
	indexes  []uint64
	restored []uint64
	check    func(index uint64) // called first, if set
}

func (r *recorder) OnApply(index uint64, events []Event) {
	if r.check != nil {
		r.check(index)
	}
	r.indexes = append(r.indexes, index)
	r.events = append(r.events, events...)
}

func (r *recorder) OnRestore(index uint64) { r.restored = append(r.restored, index) }

// sink is a raft.SnapshotSink in memory.
type sink struct {
	bytes.Buffer
	failAfter        int // bytes, if > 0
	closed, canceled bool
}

func (s *sink) Write(b []byte) (int, error) {
	if s.failAfter > 0 && s.Len()+len(b) > s.failAfter {
		return 0, io.ErrShortWrite
	}
	return s.Buffer.Write(b)
}

func (s *sink) ID() string    { return "test" }
func (s *sink) Close() error  { s.closed = true; return nil }
func (s *sink) Cancel() error { s.canceled = true; return nil }

// persist returns the snapshot of f.
func persist(t testing.TB, f *FSM) []byte {
	t.Helper()
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var s sink
	if err := snap.Persist(&s); err != nil || !s.closed || s.canceled {
		t.Fatalf("persist: %v, closed %t, canceled %t", err, s.closed, s.canceled)
	}
	snap.Release()
	return s.Bytes()
}

func restore(f *FSM, b []byte) error { return f.Restore(io.NopCloser(bytes.NewReader(b))) }

func mustRestore(t testing.TB, f *FSM, b []byte) {
	t.Helper()
	if err := restore(f, b); err != nil {
		t.Fatal(err)
	}
}

func mustPanic(t *testing.T, with string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, with) {
			t.Errorf("panic %q, want one with %q", text, with)
		}
	}()
	fn()
}
