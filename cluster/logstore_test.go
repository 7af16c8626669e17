package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func testStorage(t *testing.T, dir string, faults Faults) (*storage, chan error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Logger, cfg.Faults = hclog.NewNullLogger(), faults
	cfg.LogDeadline, cfg.StartTimeout = 50*time.Millisecond, 100*time.Millisecond
	reported := make(chan error, 10)
	s, err := openStorage(dir, &cfg, func(err error) { reported <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s, reported
}

func entries(first, last uint64) (logs []*raft.Log) {
	for i := first; i <= last; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte("data")})
	}
	return logs
}

// TestFlippedEntry: an entry that is not what was stored is found at the start, and by whoever
// reads it later; neither raft nor bbolt would notice.
func TestFlippedEntry(t *testing.T) {
	dir := t.TempDir()
	s, _ := testStorage(t, dir, nil)
	if err := s.logs.StoreLogs(entries(1, 9)); err != nil {
		t.Fatal(err)
	}
	var entry raft.Log
	if err := s.cache.GetLog(5, &entry); err != nil || string(entry.Data) != "data" || entry.Extensions != nil {
		t.Fatalf("%+v, %v", entry, err)
	}
	s.close()
	path := filepath.Join(dir, logFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Replace(content, []byte("data"), []byte("dat`"), 1)
	if bytes.Equal(flipped, content) {
		t.Fatal("the entry is not in the file")
	}
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Logger, cfg.StartTimeout = hclog.NewNullLogger(), time.Second
	if _, err := openStorage(dir, &cfg, func(error) {}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "entry 1 ") {
		t.Errorf("a start with a flipped bit: %v", err)
	}
	bolt, err := openBolt(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	reported := make(chan error, 1)
	late := newLogStore(bolt, filepath.Join(dir, logFile), time.Second, nil, func(err error) { reported <- err })
	defer late.close()
	go func() { _ = late.GetLog(1, new(raft.Log)) }()
	if err := <-reported; !errors.Is(err, ErrCorrupt) {
		t.Errorf("a read of a flipped bit: %v", err)
	}
}

func TestLogDeadline(t *testing.T) {
	release := make(chan struct{})
	hang := func(op string) error {
		if op == OpLogStore {
			<-release
		}
		return nil
	}
	s, reported := testStorage(t, t.TempDir(), hang)
	defer close(release)
	start := time.Now()
	if err := s.logs.StoreLogs(entries(1, 1)); !errors.Is(err, ErrDisk) {
		t.Errorf("storing to a hung disk: %v", err)
	}
	if err := s.logs.StoreLogs(entries(1, 1)); !errors.Is(err, ErrDisk) {
		t.Errorf("storing again: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := <-reported; !errors.Is(err, ErrDisk) || len(reported) > 0 {
		t.Errorf("reported %v and %d more, want one", err, len(reported))
	}
}

// TestPauseIsNoDeadline: a machine that was paused in the middle of a write for longer than
// the deadline has not shown that its disk hangs: to the process it was one tick.
func TestPauseIsNoDeadline(t *testing.T) {
	s, reported := testStorage(t, t.TempDir(), nil)
	release := make(chan struct{})
	slow := func() error { <-release; return nil }
	tick, result := make(chan time.Time), make(chan error)
	go func() { result <- s.logs.await("test", write{slow, make(chan error, 1)}, tick) }()
	for range deadlineTicks - 1 {
		tick <- time.Time{}
	}
	close(release)
	if err := <-result; err != nil || len(reported) > 0 {
		t.Errorf("a write that ends before the last tick: %v", err)
	}
	end := make(chan struct{})
	defer close(end)
	never := func() error { <-end; return nil }
	go func() { result <- s.logs.await("test", write{never, make(chan error, 1)}, tick) }()
	for range deadlineTicks {
		tick <- time.Time{}
	}
	if err := <-result; !errors.Is(err, ErrDisk) {
		t.Errorf("a write that never ends: %v", err)
	}
}

func TestPoisonLatch(t *testing.T) {
	failing := errors.New("input/output error")
	for _, op := range []string{OpLogStore, OpLogDelete, OpStableSet} {
		var broken atomic.Bool
		s, reported := testStorage(t, t.TempDir(), func(at string) error {
			if at == op && broken.CompareAndSwap(true, false) { // once: the next write would succeed
				return failing
			}
			return nil
		})
		if err := s.logs.StoreLogs(entries(1, 10)); err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		operate(s, op)
		if err := s.logs.StoreLogs(entries(11, 11)); !errors.Is(err, ErrDisk) || !errors.Is(err, failing) {
			t.Errorf("%s: writing after a failed write: %v", op, err)
		}
		if last, _ := s.logs.LastIndex(); last != 10 {
			t.Errorf("%s: the log ends at %d", op, last)
		}
		if err := <-reported; !errors.Is(err, failing) {
			t.Errorf("%s: reported %v", op, err)
		}
	}
}

// operate does op as raft would, on a goroutine that may end in it.
func operate(s *storage, op string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		switch op {
		case OpLogStore:
			s.logs.StoreLogs(entries(11, 11))
		case OpLogDelete:
			s.logs.DeleteRange(1, 3)
		case OpStableSet:
			s.logs.SetUint64([]byte("CurrentTerm"), 7)
			panic("raft goes on as if its term were stored")
		}
	}()
	<-done
}

func TestDeleteRange(t *testing.T) {
	const last = 3 * deleteChunk
	for _, test := range []struct {
		name         string
		from, to     uint64
		transactions int32
		first, end   uint64
	}{
		{"a prefix, in chunks", 1, 2 * deleteChunk, 2, 2*deleteChunk + 1, last},
		{"a suffix, at once", 100, last, 1, 1, 99},
		{"everything, at once", 1, last, 1, 0, 0},
	} {
		var transactions atomic.Int32
		s, _ := testStorage(t, t.TempDir(), func(op string) error {
			if op == OpLogDelete {
				transactions.Add(1)
			}
			return nil
		})
		s.logs.deadline = 10 * time.Second
		if err := s.logs.StoreLogs(entries(1, last)); err != nil {
			t.Fatal(err)
		}
		if err := s.logs.DeleteRange(test.from, test.to); err != nil {
			t.Fatal(err)
		}
		first, _ := s.logs.FirstIndex()
		end, _ := s.logs.LastIndex()
		if first != test.first || end != test.end || transactions.Load() != test.transactions {
			t.Errorf("%s: left %d to %d with %d transactions", test.name, first, end, transactions.Load())
		}
	}
}

// TestDamagedLog: whatever is done to the file, the answer is a working store or one line.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	s, _ := testStorage(t, dir, nil)
	s.logs.deadline = 10 * time.Second
	if err := s.logs.StoreLogs(entries(1, 2000)); err != nil {
		t.Fatal(err)
	}
	s.close()
	sound, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	open := func(what string, data []byte, wantError bool) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, logFile)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkLog(path, time.Second)
		if err != nil && (!errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", what, err)
		}
		if wantError && err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	open("as it was", sound, false)
	open("empty", nil, false)
	open("garbage", []byte(strings.Repeat("garbage ", 5000)), true)
	open("both meta pages gone", append(make([]byte, 8192), sound[8192:]...), true)
	open("half of it", sound[:len(sound)/2], false)
	for range 30 {
		at := 8192 + random.IntN(len(sound)-8192)&^4095
		broken := append([]byte(nil), sound...)
		copy(broken[at:at+4096], make([]byte, 4096))
		open(fmt.Sprintf("zeros at %d", at), broken, false)
	}
}

func TestGapsAreFound(t *testing.T) {
	dir := t.TempDir()
	s, _ := testStorage(t, dir, nil)
	if err := errors.Join(s.logs.StoreLogs(entries(1, 5)), s.logs.StoreLogs(entries(8, 9))); err != nil {
		t.Fatal(err)
	}
	s.close()
	cfg := DefaultConfig()
	if _, err := openStorage(dir, &cfg, nil); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "6 to 7") {
		t.Errorf("a gap in the log: %v", err)
	}
	dir = t.TempDir()
	s, _ = testStorage(t, dir, nil)
	if err := s.logs.StoreLogs(entries(5, 9)); err != nil {
		t.Fatal(err)
	}
	s.close()
	if _, err := openStorage(dir, &cfg, nil); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "1 to 4") {
		t.Errorf("a log that begins late: %v", err)
	}
}

// TestInterruptedInstall: a crash between the snapshot and the deletion of the old log.
func TestInterruptedInstall(t *testing.T) {
	dir := t.TempDir()
	s, _ := testStorage(t, dir, nil)
	if err := s.logs.StoreLogs(entries(1, 5)); err != nil {
		t.Fatal(err)
	}
	_, trans := raft.NewInmemTransport("")
	sink, err := s.snapshots.Create(1, 100, 1, raft.Configuration{}, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(sink, "state")
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "snapshots", "1-200-1.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.close()
	s, _ = testStorage(t, dir, nil)
	if last, err := s.logs.LastIndex(); last != 0 || err != nil {
		t.Errorf("the log still ends at %d: %v", last, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp")); len(left) > 0 {
		t.Errorf("unfinished snapshots are left: %v", left)
	}
}
