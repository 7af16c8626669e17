package cluster_test

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// TestIdleCost measures what three nodes with nothing to do cost, for several CommitTimeouts.
// It is a measurement, not a test: set KONTIKI_MEASURE=1 to run it.
func TestIdleCost(t *testing.T) {
	if os.Getenv("KONTIKI_MEASURE") == "" {
		t.Skip("set KONTIKI_MEASURE=1 to measure")
	}
	const span = 10 * time.Second
	for _, timeout := range []time.Duration{5, 10, 25, 50, 100} {
		timeout *= time.Millisecond
		t.Run(timeout.String(), func(t *testing.T) {
			c := clustertest.New(t, 3, production, func(_ int, cfg *cluster.Config) { cfg.CommitTimeout = timeout })
			c.WaitVoters(c.WaitLeader(), 3)
			before := cpuTime(t)
			<-time.After(span)
			cpu := cpuTime(t) - before
			t.Logf("idle: %.2f %% of a core per node", 100*cpu.Seconds()/span.Seconds()/3)
			median, worst := followerWrites(t, c)
			t.Logf("one write through a follower: %s, the worst of 101 %s", median, worst)
		})
	}
}

func cpuTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func followerWrites(t *testing.T, c *clustertest.Cluster) (median, worst time.Duration) {
	node := c.Node(c.Follower())
	const n = 101
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		mustPropose(t, node, create(fmt.Sprint("/", i), "v"))
		took[i] = time.Since(start)
		<-time.After(20 * time.Millisecond) // the cluster is quiet again
	}
	slices.Sort(took)
	return took[n/2], took[n-1]
}
