package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"kontiki/scripts/chaos/check"
	"kontiki/scripts/chaos/history"
	"kontiki/scripts/chaos/load"
	"kontiki/scripts/chaos/site"
)

// evidence is the clients that run beside the faults, and what they have seen.
type evidence struct {
	rec  *history.Recorder
	cfg  load.Config
	load *load.Load
}

func newEvidence(dir string, seed uint64) (*evidence, error) {
	rec, err := history.NewRecorder(dir)
	return &evidence{rec: rec, cfg: load.Config{Seed: seed}}, err
}

func (e *evidence) note(what string)    { e.rec.Note(what) }
func (e *evidence) started(node string) { e.rec.Note("start " + node) }

func (e *evidence) begin(ctx context.Context, s *site.Site) (err error) {
	for _, node := range s.Nodes {
		e.cfg.Endpoints = append(e.cfg.Endpoints, load.Endpoint{Node: node.Name, URL: node.URL})
	}
	e.cfg.REST = s.REST
	e.load, err = load.Start(ctx, e.cfg, e.rec)
	return err
}

// finish ends the clients and holds what they saw against every promise.
func (e *evidence) finish(ctx context.Context) (findings []string, err error) {
	e.load.Stop()
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	final, err := check.Collect(ctx, e.cfg, e.rec)
	for _, finding := range check.All(e.rec.History(), final) {
		findings = append(findings, finding.String())
	}
	return findings, errors.Join(err, e.rec.Close())
}

// calmTime is how long the load runs before the first fault, to see what it takes of servers.
const calmTime = 2 * time.Second

// calm runs the load without any fault and returns the most that a server uses when it is over:
// the leader has duties that others have not, and any node may lead in the end.
func calm(ctx context.Context, s *site.Site, dir string, seed uint64) (most site.Usage, err error) {
	dir = filepath.Join(dir, "calm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return most, err
	}
	e, err := newEvidence(dir, seed)
	if err != nil {
		return most, err
	}
	e.cfg.Namespace = "calm"
	if err := e.begin(ctx, s); err != nil {
		return most, err
	}
	err = pause(ctx, calmTime)
	e.load.Stop()
	if err := errors.Join(err, e.rec.Close()); err != nil {
		return most, err
	}
	return usage(s)
}

// usage is the most that any server has of each.
func usage(s *site.Site) (most site.Usage, err error) {
	for _, node := range s.Nodes {
		now, nodeErr := node.Usage()
		most, err = most.Max(now), errors.Join(err, nodeErr)
	}
	return most, err
}
