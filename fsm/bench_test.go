package fsm

import (
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

func benchKey(i int) string { return fmt.Sprintf("/core/pods/ns-%02d/pod-%06d", i%50, i) }

// filled returns an FSM with n entries of 1 kB.
func filled(n int) *FSM {
	f := New()
	logs := make([]*raft.Log, n)
	for i := range logs {
		c := create(benchKey(i), string(make([]byte, 1024)))
		c.ID, c.Base = id(uint64(i)), uint64(i)
		logs[i] = entryLog(uint64(i+1), c)
	}
	f.ApplyBatch(logs)
	return f
}

// updates returns n entries that follow the last one of f.
func updates(f *FSM, n, entries int) []*raft.Log {
	logs := make([]*raft.Log, n)
	for i := range logs {
		index := f.Index() + uint64(i) + 1
		c := update(benchKey(i*7919%entries), string(make([]byte, 1024)), 0)
		c.ID, c.Base = id(index), index-1
		logs[i] = entryLog(index, c)
	}
	return logs
}

func BenchmarkApply(b *testing.B) {
	f := filled(100_000)
	var logs []*raft.Log
	b.ReportAllocs()
	for b.Loop() {
		if len(logs) == 0 {
			b.StopTimer()
			logs = updates(f, 10_000, 100_000)
			b.StartTimer()
		}
		f.Apply(logs[0])
		logs = logs[1:]
	}
}

func BenchmarkApplyBatch64(b *testing.B) {
	f := filled(100_000)
	var logs []*raft.Log
	b.ReportAllocs()
	for b.Loop() {
		if len(logs) == 0 {
			b.StopTimer()
			logs = updates(f, 64*200, 100_000)
			b.StartTimer()
		}
		f.ApplyBatch(logs[:64])
		logs = logs[64:]
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/entry")
}

func BenchmarkGet(b *testing.B) {
	v := filled(100_000).View()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 7919) % 100_000
		if _, ok := v.Get(benchKeys[i]); !ok {
			b.Fatal("not found")
		}
	}
}

var benchKeys = func() (keys [100_000]string) {
	for i := range keys {
		keys[i] = benchKey(i)
	}
	return keys
}()

func BenchmarkAscend10k(b *testing.B) {
	v := filled(10_000).View()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		v.Ascend("/core/pods/", "", func(*Entry) bool { n++; return true })
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	v := filled(100_000).View()
	b.ReportAllocs()
	for b.Loop() {
		v.Count("/core/pods/", "/core/pods/ns-07/")
	}
}

func BenchmarkSnapshot(b *testing.B) {
	v := filled(100_000).View()
	b.SetBytes(100_000 * 1024)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.WriteSnapshot(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	snap := persist(b, filled(100_000))
	b.SetBytes(int64(len(snap)))
	b.ReportAllocs()
	for b.Loop() {
		mustRestore(b, New(), snap)
	}
}
