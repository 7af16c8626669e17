package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/scripts/servers"
)

const (
	replicas = 3
	warmUp   = 200 // pods before anything is measured
)

// A bench is one run: the servers, and what was measured.
type bench struct {
	options
	dir     string
	round   int
	targets []*target
	record  *record
}

// launch starts Kontiki or the peer with this many replicas.
func (b *bench) launch(ctx context.Context, name string, replicas int) (*servers.Group, error) {
	dir, err := os.MkdirTemp(b.dir, name+"-")
	if err != nil {
		return nil, err
	}
	switch name {
	case floorName:
		return startFloor(ctx, dir)
	case "kontiki":
		binary, err := filepath.Abs(b.binary)
		if err != nil {
			return nil, err
		}
		return (&servers.Kontiki{Binary: binary, Dir: dir, Nodes: replicas, Tokens: tokens, Token: adminToken}).Start(ctx)
	}
	return servers.Peer{Binaries: b.binaries, Dir: dir, Members: replicas, Fsync: true, Tokens: tokens, Token: adminToken}.Start(ctx)
}

// start starts the servers that the load is for, and warms them up.
func (b *bench) start(ctx context.Context) error {
	names := []string{"kontiki"}
	if b.peer {
		names = append(names, "kube-apiserver")
	}
	if b.floor {
		names = append(names, floorName)
	}
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "starting %s\n", name)
		group, err := b.launch(ctx, name, replicas)
		if group != nil {
			b.targets = append(b.targets, &target{group: group})
		}
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, t := range b.targets {
		t.group.Stop()
	}
}

// prepare connects the workers and has the servers do everything once, in a group that was idle until now.
func (b *bench) prepare(ctx context.Context, t *target) error {
	if t.clients != nil {
		return nil
	}
	if err := t.connect(ctx, b.Workers, b.Gzip); err != nil {
		return err
	}
	if t.group.Name == floorName {
		return t.copyAnswers(ctx, b.targets[0])
	}
	if err := exchange(ctx, t.clients[0].Post().AbsPath("/api/v1/namespaces"), &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	for _, warm := range []load{t.creates(warmUp), t.deletes(warmUp)} {
		if _, err := warm.run(ctx, b.Workers, func(int) {}); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	return nil
}

// measure runs one phase on one target.
func (b *bench) measure(ctx context.Context, p phase, t *target) error {
	if !p.cold {
		if err := b.prepare(ctx, t); err != nil {
			return err
		}
	}
	b.tell(p, t, "begins")
	begin := time.Now()
	r, err := p.run(b, ctx, p, t)
	if err != nil {
		return err
	}
	r.Phase, r.Server, r.Round = p.name, t.group.Name, b.round
	b.record.Results = append(b.record.Results, r)
	b.tell(p, t, fmt.Sprintf("%s (%.1fs)", r.brief(), time.Since(begin).Seconds()))
	return nil
}
