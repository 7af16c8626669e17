package main

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// leasesAWorker is how many nodes' leases a worker renews in turn.
const leasesAWorker = 20

// renew updates leases as kubelets do: each has one client, who knows its latest version.
func renew(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	if t.leases == nil {
		if err := t.createLeases(ctx, b.Workers); err != nil {
			return result{}, err
		}
	}
	turns := make([]int, b.Workers)
	return b.measured(ctx, p, t, load{count: 2 * b.Pods, do: func(ctx context.Context, w, _ int) error {
		turns[w]++
		lease := t.leases[w][turns[w]%leasesAWorker]
		fresh := newLease(0).Spec
		lease.Spec.RenewTime = fresh.RenewTime
		return exchange(ctx, t.clients[w].Put().AbsPath(leasesPath, lease.Name), lease)
	}}, b.Workers)
}

func (t *target) createLeases(ctx context.Context, workers int) error {
	t.leases = make([][]*coordinationv1.Lease, workers)
	for i := range workers * leasesAWorker {
		w, lease := i%workers, newLease(i)
		if err := exchange(ctx, t.clients[w].Post().AbsPath(leasesPath), lease); err != nil {
			return fmt.Errorf("create a lease to renew: %w", err)
		}
		t.leases[w] = append(t.leases[w], lease)
	}
	return nil
}

// exchange sends an object and takes over what the server made of it.
func exchange(ctx context.Context, request *rest.Request, object runtime.Object) error {
	body, err := encode(object)
	if err != nil {
		return err
	}
	answer, err := request.SetHeader("Content-Type", protobufMedia).Body(body).Do(ctx).Raw()
	if err != nil {
		return err
	}
	_, _, err = wire.Decode(answer, nil, object)
	return err
}
