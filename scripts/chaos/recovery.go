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

// What a healed cluster must do without a person.
const (
	writesWithin  = 10 * time.Second
	catchUpWithin = 30 * time.Second
	tidyWithin    = 30 * time.Second
)

// What a server may keep after the storm, more than before it.
const (
	goroutinesMore = 60
	memoryMore     = 192 << 20
	diskMore       = 48 << 20
)

const probePath = "/api/v1/namespaces/default"

type probed struct {
	Metadata struct {
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
}

func (p *probed) version() (uint64, error) {
	return strconv.ParseUint(p.Metadata.ResourceVersion, 10, 64)
}

// recovered waits until a write succeeds anywhere, and then until every node serves it.
func recovered(ctx context.Context, s *site.Site) (string, error) {
	began := time.Now()
	version, err := written(ctx, s)
	if err != nil {
		return "", err
	}
	writes := time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin-writes)
	defer cancel()
	errs := make(chan error, len(s.Nodes))
	for _, node := range s.Nodes {
		go func() { errs <- caughtUp(ctx, s, node, version) }()
	}
	for range s.Nodes {
		if nodeErr := <-errs; nodeErr != nil {
			err = nodeErr
		}
	}
	return fmt.Sprintf("writes after %.1fs, all nodes after %.1fs", writes.Seconds(), time.Since(began).Seconds()), err
}

// written tries all nodes at once, as clients that may move do.
func written(ctx context.Context, s *site.Site) (version uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writesWithin)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, node := range s.Nodes {
		all.Go(func() {
			nodeErr := site.Until(ctx, "a write succeeds on "+node.Name, func() error {
				var answer probed
				body := map[string]any{"metadata": map[string]any{"labels": map[string]string{"probe": fmt.Sprint(time.Now().UnixNano())}}}
				if err := s.Do(ctx, node, http.MethodPatch, probePath, body, &answer); err != nil {
					return err
				}
				cancel() // the first is enough
				mu.Lock()
				defer mu.Unlock()
				var err error
				version, err = answer.version()
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if nodeErr != nil {
				err = nodeErr
			}
		})
	}
	all.Wait()
	if version > 0 {
		return version, nil
	}
	return 0, err
}

// caughtUp waits until a node says that it is ready and answers a linearizable read with at
// least a version.
func caughtUp(ctx context.Context, s *site.Site, node *site.Node, version uint64) error {
	return site.Until(ctx, node.Name+" has caught up", func() error {
		var answer probed
		if err := s.Get(ctx, node, probePath, &answer); err != nil {
			return err
		}
		if have, err := answer.version(); err != nil || have < version {
			return fmt.Errorf("STALE: %s answers version %d (%w) after %d was acknowledged", node.Name, have, err, version)
		}
		return s.Get(ctx, node, "/readyz", nil)
	})
}

// tidy waits until no server uses much more than any did before, and returns what they use.
func tidy(ctx context.Context, s *site.Site, was site.Usage) (now site.Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, tidyWithin)
	defer cancel()
	err = site.Until(ctx, "servers use what they did before", func() (err error) {
		if now, err = usage(s); err != nil {
			return err
		}
		if now.Goroutines > was.Goroutines+goroutinesMore || now.MemoryBytes > was.MemoryBytes+memoryMore || now.DiskBytes > was.DiskBytes+diskMore {
			return fmt.Errorf("%s, before %s", now, was)
		}
		return nil
	})
	if err != nil {
		for _, node := range s.Nodes {
			_, stacksErr := node.Fault("stacks") // into its log
			err = errors.Join(err, stacksErr)
		}
	}
	return now, err
}
