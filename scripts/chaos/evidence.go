package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"kontiki/scripts/chaos/site"
)

// evidence is the clients that run beside the faults, and what they say in the end.
type evidence interface {
	note(what string)
	started(node string) // is called from the start on, even before begin
	begin(ctx context.Context, s *site.Site) error
	finish(ctx context.Context) (findings []string, err error)
}

func newEvidence(string, uint64) (evidence, error) { return &counters{}, nil }

// counters write one growing number through each node. In the end, every node must read the
// last one that was acknowledged, or a later one that had begun.
type counters struct {
	site                *site.Site
	cancel              context.CancelFunc
	work                sync.WaitGroup
	acknowledged, began []int // by node
}

func (c *counters) note(string)    {}
func (c *counters) started(string) {}

func (c *counters) begin(ctx context.Context, s *site.Site) error {
	c.site, c.acknowledged, c.began = s, make([]int, len(s.Nodes)), make([]int, len(s.Nodes))
	ctx, c.cancel = context.WithCancel(ctx)
	for i := range s.Nodes {
		c.work.Go(func() { c.count(ctx, i) })
	}
	return nil
}

func label(i int) string { return fmt.Sprintf("counter-%d", i) }

func (c *counters) count(ctx context.Context, i int) {
	for n := 1; pause(ctx, 20*time.Millisecond) == nil; n++ {
		c.began[i] = n
		body := map[string]any{"metadata": map[string]any{"labels": map[string]string{label(i): strconv.Itoa(n)}}}
		if c.site.Do(ctx, c.site.Nodes[i], http.MethodPatch, probePath, body, nil) == nil {
			c.acknowledged[i] = n
		}
	}
}

func (c *counters) allows(i, have int) bool { return have >= c.acknowledged[i] && have <= c.began[i] }

func (c *counters) finish(ctx context.Context) (findings []string, err error) {
	if c.cancel == nil {
		return nil, nil // it has not begun
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	c.cancel()
	c.work.Wait()
	for _, node := range c.site.Nodes {
		var object struct {
			Metadata struct{ Labels map[string]string }
		}
		getErr := site.Until(ctx, node.Name+" answers", func() error { return c.site.Get(ctx, node, probePath, &object) })
		err = errors.Join(err, getErr)
		for i := range c.acknowledged {
			have, _ := strconv.Atoi(object.Metadata.Labels[label(i)])
			if getErr == nil && !c.allows(i, have) {
				findings = append(findings, fmt.Sprintf("%s has %s=%d, %d was acknowledged and %d the last tried", node.Name, label(i), have, c.acknowledged[i], c.began[i]))
			}
		}
	}
	return findings, err
}
