package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"kontiki/scripts/chaos/site"
)

const (
	snapshotPath = "/kontiki/v1/snapshot"
	digestPath   = "/kontiki/v1/digest"
)

// restored takes a backup from one node, writes on, and restores it through another one. It
// comes last, because it takes back what was acknowledged, which no checker would forgive.
// All nodes must then have the old state at a later version, and have told watches so.
func restored(ctx context.Context, s *site.Site, luck *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	from, through := s.Nodes[luck.IntN(len(s.Nodes))], s.Nodes[luck.IntN(len(s.Nodes))]
	if _, err := label(ctx, s, from, "saved"); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	backup, err := s.Raw(ctx, from, http.MethodGet, snapshotPath, "", nil)
	if err != nil {
		return fmt.Errorf("restore: save: %w", err)
	}
	before, err := label(ctx, s, through, "lost")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	told := make(chan error, len(s.Nodes))
	for _, node := range s.Nodes {
		go func() { told <- watchEnds(ctx, s, node, before) }()
	}
	if _, err := s.Raw(ctx, through, http.MethodPost, snapshotPath, "application/octet-stream", backup); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for range s.Nodes {
		err = errors.Join(err, <-told)
	}
	for _, node := range s.Nodes {
		err = errors.Join(err, hasSaved(ctx, s, node, before))
	}
	return errors.Join(err, sameDigests(ctx, s))
}

// label writes the probe's object.
func label(ctx context.Context, s *site.Site, node *site.Node, value string) (uint64, error) {
	var answer probed
	body := map[string]any{"metadata": map[string]any{"labels": map[string]string{"restore": value}}}
	if err := s.Do(ctx, node, http.MethodPatch, probePath, body, &answer); err != nil {
		return 0, err
	}
	return answer.version()
}

// watchEnds follows a watch from a version before the restore to its end, which is a 410.
func watchEnds(ctx context.Context, s *site.Site, node *site.Node, from uint64) error {
	path := fmt.Sprintf("/api/v1/namespaces?watch=1&resourceVersion=%d", from)
	text, err := s.Raw(ctx, node, http.MethodGet, path, "", nil)
	if !bytes.Contains(text, []byte(`"code":410`)) {
		return fmt.Errorf("restore: a watch on %s from before it ends with %w: %.300s", node.Name, err, text)
	}
	return nil
}

// hasSaved reads the probe's object as it was saved, at a version after all others.
func hasSaved(ctx context.Context, s *site.Site, node *site.Node, before uint64) error {
	var now probed
	if err := s.Get(ctx, node, probePath, &now); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	version, err := now.version()
	if have := now.Metadata.Labels["restore"]; err != nil || version <= before || have != "saved" {
		return fmt.Errorf("restore: %s has %q at version %d, want the saved one after %d", node.Name, have, version, before)
	}
	return nil
}

// sameDigests waits until all nodes are at one index, and compares.
func sameDigests(ctx context.Context, s *site.Site) error {
	type digest struct {
		Index  uint64 `json:"index"`
		Digest string `json:"digest"`
	}
	return site.Until(ctx, "all nodes are at one index with one digest after a restore", func() error {
		var first digest
		for i, node := range s.Nodes {
			var now digest
			if err := s.Get(ctx, node, digestPath, &now); err != nil {
				return err
			}
			if i == 0 {
				first = now
			}
			if now != first {
				return fmt.Errorf("%s has %+v, %s has %+v", s.Nodes[0].Name, first, node.Name, now)
			}
		}
		return nil
	})
}
