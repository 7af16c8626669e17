package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	starts  = 3 // of which the median counts
	kills   = 5
	settle  = 5 * time.Second  // after which a server is idle
	idleFor = 10 * time.Second // is measured
	// attempt is how long a write may take before another is tried.
	attempt = 15 * time.Second
)

// startMany is the time from the first process until all are ready, on new data.
func startMany(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.startsOf(ctx, p, t, replicas)
}

func startOne(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.startsOf(ctx, p, t, 1)
}

func (b *bench) startsOf(ctx context.Context, p phase, t *target, replicas int) (result, error) {
	var took []time.Duration
	for range starts {
		group, err := b.launch(ctx, t.group.Name, replicas)
		if group != nil {
			group.Stop()
		}
		if err != nil {
			return result{}, err
		}
		took = append(took, group.Ready)
		b.tell(p, t, group.Ready.Round(time.Millisecond).String())
	}
	return durations(took), nil
}

func durations(took []time.Duration) result {
	slices.Sort(took)
	return result{Operations: len(took), Seconds: percentile(took, 50).Seconds(), Most: took[len(took)-1].Seconds()}
}

// idle is what servers take when nobody asks them anything.
func idle(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	if !await(ctx, time.Now().Add(settle)) {
		return result{}, context.Cause(ctx)
	}
	before, err := cpuTime(t.group.Pids())
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	if !await(ctx, begin.Add(idleFor)) {
		return result{}, context.Cause(ctx)
	}
	after, err := cpuTime(t.group.Pids())
	if err != nil {
		return result{}, err
	}
	r, err := residentAfter(b, ctx, p, t)
	r.Core = 100 * float64(after-before) / float64(time.Since(begin)) / float64(len(t.group.Pids()))
	return r, err
}

func residentAfter(_ *bench, _ context.Context, _ phase, t *target) (result, error) {
	m, err := residentMemory(t.group.Pids())
	return result{Operations: len(t.group.Pids()), Resident: m.Resident, Anonymous: m.Anonymous}, err
}

// killLeader is the time from kill -9 of the leader until the next write is acknowledged, through any
// endpoint that is left. Then the leader starts again, on its data.
func killLeader(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	if err := t.fill(ctx, b); err != nil {
		return result{}, err
	}
	var took []time.Duration
	for range kills {
		leader, err := t.group.Leader(ctx)
		if err != nil {
			return result{}, err
		}
		outage, err := b.outage(ctx, t, leader)
		if err != nil {
			return result{}, err
		}
		took = append(took, outage)
		b.tell(p, t, fmt.Sprintf("%s without %s", outage.Round(time.Millisecond), t.group.Replicas[leader].Name))
		if err := t.group.Replicas[leader].Start(); err != nil {
			return result{}, err
		}
		if err := t.group.AwaitReady(ctx); err != nil {
			return result{}, err
		}
	}
	return durations(took), nil
}

func (b *bench) outage(ctx context.Context, t *target, leader int) (time.Duration, error) {
	var writers []*client
	for _, e := range t.group.Without(leader) {
		c, err := newClient(e, b.Gzip)
		if err == nil {
			err = c.get(ctx, anyPath)
		}
		if err != nil {
			return 0, err
		}
		defer c.transport.CloseIdleConnections()
		writers = append(writers, c)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	acknowledged := make(chan time.Time, len(writers))
	t.group.Replicas[leader].Kill()
	begin := time.Now()
	for i, c := range writers {
		go func() {
			for ctx.Err() == nil {
				if c.write(ctx, i) == nil {
					acknowledged <- time.Now()
					return
				}
			}
		}()
	}
	select {
	case at := <-acknowledged:
		return at.Sub(begin), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("no write within a minute after the leader's end: %w", context.Cause(ctx))
	}
}

// write changes a pod.
func (c *client) write(ctx context.Context, pod int) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"written":"%d"}}}`, time.Now().UnixNano())
	return c.Patch(types.MergePatchType).AbsPath(podPath(pod)).Body(body).Do(ctx).Error()
}
