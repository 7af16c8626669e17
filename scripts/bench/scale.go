package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kontiki/scripts/servers"
)

// A point is what Kontiki takes with this many pods.
type point struct {
	Objects   int     `json:"objects"`
	PerSecond float64 `json:"createsPerSecond"`
	Create    float64 `json:"createCPUms"`
	Get       float64 `json:"getCPUms"`
	Patch     float64 `json:"patchCPUms"`
	List      float64 `json:"listCPUmsPerThousand"`
	ListMs    float64 `json:"listMs"`
	Memory    memory  `json:"memoryPerNode"`
	PerObject float64 `json:"anonymousKiBPerObject"` // beyond what an idle node has
	Restart   float64 `json:"restartSeconds"`
	Snapshots int     `json:"snapshots"` // that were taken while the pods were created
	Snapshot  float64 `json:"snapshotSeconds,omitempty"`
	QuietP99  float64 `json:"writeP99ms"` // while no snapshot was taken
	BusyP99   float64 `json:"writeP99msInSnapshot,omitempty"`
}

// A scale is a Kontiki cluster that grows.
type scale struct {
	*bench
	*target
	cluster *servers.Kontiki
	idle    memory
}

// samples are how many operations a point is measured with.
const samples = 2000

// grow measures the curves.
func (o options) grow(ctx context.Context, r *record) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	s := scale{
		bench:   &bench{options: o, dir: dir, record: r, round: 1},
		cluster: &servers.Kontiki{Binary: binary, Dir: dir, Nodes: replicas, Tokens: tokens, Token: adminToken},
	}
	group, err := s.cluster.Start(ctx)
	defer group.Stop()
	if err != nil {
		return err
	}
	s.target = &target{group: group}
	if err := s.prepare(ctx, s.target); err != nil {
		return err
	}
	if s.idle, err = residentMemory(group.Pids()); err != nil {
		return err
	}
	from := 0
	for _, size := range o.Sizes {
		p, err := s.point(ctx, from, size)
		if err != nil {
			return fmt.Errorf("with %d pods: %w", size, err)
		}
		r.Points = append(r.Points, p)
		from = size
	}
	if r.Crowd, err = s.crowd(ctx, from); err != nil {
		return fmt.Errorf("with %d watchers: %w", o.Watchers, err)
	}
	joined, err := s.cluster.Join(ctx, group)
	r.Crowd.Join = joined.Seconds()
	return err
}

// point grows the cluster to a size and measures it there.
func (s scale) point(ctx context.Context, from, size int) (p point, err error) {
	p.Objects = size
	title := phase{name: fmt.Sprint(size)}
	if err := s.fillTo(ctx, title, from, size, &p); err != nil {
		return p, err
	}
	m, err := residentMemory(s.group.Pids())
	if err != nil {
		return p, err
	}
	p.Memory = memory{Resident: m.Resident / replicas, Anonymous: m.Anonymous / replicas}
	p.PerObject = (m.Anonymous - s.idle.Anonymous) * 1024 / replicas / float64(size)
	steps := []struct {
		into *float64
		unit float64
		load load
	}{
		{&p.Get, 1, load{count: samples, do: func(ctx context.Context, w, i int) error { return s.clients[w].get(ctx, podPath(i*7919%size)) }}},
		{&p.Patch, 1, load{count: samples, do: func(ctx context.Context, w, i int) error { return s.touch(ctx, w, i*7919%size) }}},
		{&p.List, float64(size) / 1000, load{count: 5, do: func(ctx context.Context, w, _ int) error {
			_, err := s.clients[w].drain(ctx, protobufMedia)
			return err
		}}},
	}
	for _, step := range steps {
		workers := min(s.Workers, step.load.count)
		r, err := s.measured(ctx, title, s.target, step.load, workers)
		if err != nil {
			return p, err
		}
		*step.into, p.ListMs = r.CPU/step.unit, r.P50
	}
	p.Restart, err = s.restart(ctx)
	s.tell(title, s.target, fmt.Sprintf("%+v", p))
	return p, err
}

// fillTo creates pods, and notes the snapshots that the leader takes meanwhile.
func (s scale) fillTo(ctx context.Context, title phase, from, to int, p *point) error {
	leader, err := s.group.Leader(ctx)
	if err != nil {
		return err
	}
	writes := make([][]span, s.Workers)
	creates := s.creates(to - from)
	watched := load{count: creates.count, do: func(ctx context.Context, w, i int) error {
		begin := time.Now()
		err := creates.do(ctx, w, from+i)
		writes[w] = append(writes[w], span{begin, time.Now()})
		return err
	}}
	if _, err := os.Stat(s.cluster.SnapshotDir(leader)); err != nil {
		return fmt.Errorf("no place to see snapshots: %w", err)
	}
	var taken snapshots
	stop := every(5*time.Millisecond, func() { taken.look(s.cluster.SnapshotDir(leader)) })
	r, err := s.measured(ctx, title, s.target, watched, s.Workers)
	stop()
	p.PerSecond, p.Create = r.PerSecond, r.CPU
	quiet, busy := split(slices.Concat(writes...), taken.spans)
	p.QuietP99, p.BusyP99 = milliseconds(percentile(quiet, 99)), milliseconds(percentile(busy, 99))
	p.Snapshots, p.Snapshot = len(taken.spans), median(lengths(taken.spans))
	return err
}

// restart kills a follower and returns how long it takes from its start until it is ready.
func (s scale) restart(ctx context.Context) (float64, error) {
	leader, err := s.group.Leader(ctx)
	if err != nil {
		return 0, err
	}
	follower := s.group.Replicas[(leader+1)%replicas]
	follower.Kill()
	begin := time.Now()
	if err := follower.Start(); err != nil {
		return 0, err
	}
	err = s.group.AwaitReady(ctx)
	return time.Since(begin).Seconds(), err
}
