package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

func create(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	if err := t.empty(ctx, b); err != nil {
		return result{}, err
	}
	r, err := b.measured(ctx, p, t, t.creates(b.Pods), b.Workers)
	t.filled = err == nil
	return r, err
}

func (t *target) creates(count int) load {
	return load{count: count, do: func(ctx context.Context, w, i int) error {
		body, err := encode(newPod(i))
		if err != nil {
			return err
		}
		return t.clients[w].Post().AbsPath(podsPath).SetHeader("Content-Type", protobufMedia).Body(body).Do(ctx).Error()
	}}
}

func (t *target) deletes(count int) load {
	options := []byte(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`)
	return load{count: count, do: func(ctx context.Context, w, i int) error {
		return t.clients[w].Delete().AbsPath(podPath(i)).SetHeader("Content-Type", jsonMedia).Body(options).Do(ctx).Error()
	}}
}

// fill creates the pods unless they are there; empty removes them.
func (t *target) fill(ctx context.Context, b *bench) error {
	if t.filled {
		return nil
	}
	_, err := t.creates(b.Pods).run(ctx, b.Workers, func(done int) {
		b.tell(phase{name: "(fill)"}, t, fmt.Sprintf("%d of %d", done, b.Pods))
	})
	t.filled = err == nil
	return err
}

func (t *target) empty(ctx context.Context, b *bench) error {
	if !t.filled {
		return nil
	}
	_, err := t.deletes(b.Pods).run(ctx, b.Workers, func(int) {})
	t.filled = err != nil
	return err
}

// onPods runs a load on pods that are there.
func (b *bench) onPods(ctx context.Context, p phase, t *target, workers int, l load) (result, error) {
	if err := t.fill(ctx, b); err != nil {
		return result{}, err
	}
	return b.measured(ctx, p, t, l, workers)
}

func get(query string) func(*bench, context.Context, phase, *target) (result, error) {
	return func(b *bench, ctx context.Context, p phase, t *target) (result, error) {
		return b.onPods(ctx, p, t, b.Workers, load{count: 4 * b.Pods, do: func(ctx context.Context, w, i int) error {
			return t.clients[w].get(ctx, podPath(i%b.Pods)+query)
		}})
	}
}

func patchStatus(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	body := status(b.round)
	return b.onPods(ctx, p, t, b.Workers, load{count: b.Pods, do: func(ctx context.Context, w, i int) error {
		return t.clients[w].Patch(types.StrategicMergePatchType).AbsPath(podPath(i), "status").Body(body).Do(ctx).Error()
	}})
}

func apply(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.onPods(ctx, p, t, b.Workers, load{count: b.Pods, do: func(ctx context.Context, w, i int) error {
		return t.clients[w].Patch(types.ApplyPatchType).AbsPath(podPath(i)).
			Param("fieldManager", "deployer").Param("force", "true").Body(applied(i, b.round)).Do(ctx).Error()
	}})
}

func remove(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	r, err := b.onPods(ctx, p, t, b.Workers, t.deletes(b.Pods))
	t.filled = err != nil
	return r, err
}
