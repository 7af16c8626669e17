package metrics

import (
	"context"
	"testing"

	"kontiki/cluster"
)

// restored is a leader whose state was restored: its index is ahead of raft's.
type restored struct{ Node }

const ahead = 1_000_000_000

func (restored) Status() cluster.Status {
	return cluster.Status{Name: "a", Leader: "a", LastIndex: 50, CommitIndex: 50, AppliedIndex: ahead + 50}
}

func (restored) Applied(context.Context) map[string]uint64 {
	return map[string]uint64{"same": ahead + 50, "newer": ahead + 51, "behind": ahead + 40, "before the restore": 45}
}

func TestLagAfterRestore(t *testing.T) {
	want := map[string]float64{"same": 0, "newer": 0, "behind": 10, "before the restore": ahead + 5}
	readLag(&Metrics{sources: Sources{Node: restored{}}}, func(lag float64, labels ...string) {
		if name := labels[0]; lag != want[name] {
			t.Errorf("%s lags %v, want %v", name, lag, want[name])
		}
		delete(want, labels[0])
	})
	if len(want) != 0 {
		t.Errorf("nothing of %v", want)
	}
}
