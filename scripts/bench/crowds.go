package main

import (
	"context"
	"errors"
	"fmt"
)

// crowded is what many watchers take, each of one node's pods, as kubelets watch.
type crowded struct {
	Watchers  int     `json:"watchers"`
	PerWatch  float64 `json:"anonymousKiBPerWatch"` // a TLS connection included
	Alone     float64 `json:"writeCPUmsWithout"`
	Together  float64 `json:"writeCPUmsWith"`
	P50       float64 `json:"p50ms"`
	P99       float64 `json:"p99ms"`
	Join      float64 `json:"joinSeconds"` // of a new node, which gets a snapshot
	WithSpace int     `json:"objects"`
}

// crowd opens the watches and compares what a write takes with them and without. An event has one watcher.
func (s scale) crowd(ctx context.Context, size int) (*crowded, error) {
	c := &crowded{Watchers: s.Watchers, WithSpace: size}
	// More than elsewhere: a collection of a large heap takes seconds of CPU, and falls into one of two
	// short measurements or into the other.
	count := min(size, 5*samples, s.Watchers*podsANode)
	changes := load{count: count, do: s.touch}
	title := phase{name: "watchers"}
	alone, err := s.measured(ctx, title, s.target, changes, s.Workers)
	if err != nil || s.Watchers == 0 {
		return c, err
	}
	before, err := residentMemory(s.group.Pids())
	if err != nil {
		return c, err
	}
	crowd, err := s.watch(ctx, watching{count: s.Watchers, events: count, fields: func(i int) string { return "spec.nodeName=" + nodeName(i) }})
	if err != nil {
		return c, err
	}
	defer crowd.close()
	after, err := residentMemory(s.group.Pids())
	if err != nil {
		return c, err
	}
	together, err := s.measured(ctx, title, s.target, changes, s.Workers)
	if err := errors.Join(err, crowd.await(ctx)); err != nil {
		return c, err
	}
	c.PerWatch = (after.Anonymous - before.Anonymous) * 1024 / float64(s.Watchers)
	c.Alone, c.Together = alone.CPU, together.CPU
	delays := crowd.delays(-1, len(s.group.Endpoints))
	c.P50, c.P99 = milliseconds(percentile(delays, 50)), milliseconds(percentile(delays, 99))
	s.tell(title, s.target, fmt.Sprintf("%+v", *c))
	return c, nil
}

// table is empty for nil.
func (c *crowded) table() table {
	if c == nil || c.Watchers == 0 {
		return nil
	}
	return table{
		{fmt.Sprintf("%d pods", c.WithSpace), "value"},
		{fmt.Sprintf("memory of each of %d watches of one node's pods", c.Watchers), fmt.Sprintf("%.0f KiB", c.PerWatch)},
		{"CPU of a write, without and with them", fmt.Sprintf("%.2f ms, %.2f ms", c.Alone, c.Together)},
		{"from a write to its watcher, p50 and p99", fmt.Sprintf("%.1f ms, %.1f ms", c.P50, c.P99)},
		{"a new node, from its start until it is ready", fmt.Sprintf("%.2f s", c.Join)},
	}
}

// growth has a column for each size.
func (r *record) growth() table {
	rows := []struct {
		title string
		cell  func(p point) string
	}{
		{"pods", func(p point) string { return fmt.Sprint(p.Objects) }},
		{"create, CPU ms", func(p point) string { return significant(p.Create) }},
		{"get, CPU ms", func(p point) string { return significant(p.Get) }},
		{"patch, CPU ms", func(p point) string { return significant(p.Patch) }},
		{"list, CPU ms per 1,000 pods", func(p point) string { return significant(p.List) }},
		{"list of all, five at a time, ms", func(p point) string { return fmt.Sprintf("%.0f", p.ListMs) }},
		{"memory a node, MiB (anonymous)", func(p point) string { return fmt.Sprintf("%.0f (%.0f)", p.Memory.Resident, p.Memory.Anonymous) }},
		{"memory a pod and node, KiB", func(p point) string { return fmt.Sprintf("%.1f", p.PerObject) }},
		{"restart of a node to ready, s", func(p point) string { return fmt.Sprintf("%.2f", p.Restart) }},
		{"snapshot on the leader, s", func(p point) string { return ifAny(p.Snapshots, "%.2f", p.Snapshot) }},
		{"create p99, no snapshot, ms", func(p point) string { return fmt.Sprintf("%.0f", p.QuietP99) }},
		{"create p99, during a snapshot, ms", func(p point) string { return ifAny(p.Snapshots, "%.0f", p.BusyP99) }},
	}
	if len(r.Points) == 0 {
		return nil
	}
	var t table
	for _, row := range rows {
		line := []string{row.title}
		for _, p := range r.Points {
			line = append(line, row.cell(p))
		}
		t = append(t, line)
	}
	return t
}

// ifAny is a dash for what did not happen.
func ifAny(count int, format string, value float64) string {
	if count == 0 {
		return "–"
	}
	return fmt.Sprintf(format, value)
}
