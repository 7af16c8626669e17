package duties

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/rangeallocation"
	addresses "k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller"
	ports "k8s.io/kubernetes/pkg/registry/core/service/portallocator/controller"

	"kontiki/api/registry"
)

// repairInterval is upstream's: addresses and ports of services that were given
// out and are not used, or the reverse, as after a crash between two writes.
const repairInterval = 3 * time.Minute

// RepairServices runs upstream's repairs of what services were given. It returns
// soon after ctx ends.
func RepairServices(ctx context.Context, config *rest.Config, allocators *registry.Allocators, ranges registry.Ranges) error {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &until{ctx, next} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client for repairs: %w", err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	done := func() {}
	running.Go(func() {
		repair := addresses.NewRepair(repairInterval, client.CoreV1(), client.EventsV1(), &ranges.ClusterIPs, &record{ctx, allocators.ClusterIPs}, nil, nil)
		repair.RunUntil(done, stop)
	})
	running.Go(func() {
		repair := ports.NewRepair(repairInterval, client.CoreV1(), client.EventsV1(), ranges.NodePorts, &record{ctx, allocators.NodePorts})
		repair.RunUntil(done, stop)
	})
	<-ctx.Done()
	close(stop)
	running.Wait()
	return nil
}

// until sends no request after ctx has ended. Upstream's repairs know no context: told by
// a server that stops to come again, they would ten times.
type until struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (u *until) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := u.ctx.Err(); err != nil {
		return nil, err
	}
	return u.next.RoundTrip(r)
}

// record is what a repair compares with the services, for as long as ctx. A repair asks
// for half a minute until there is an answer, so after ctx there is one, with nothing in it:
// the request that follows fails.
type record struct {
	ctx context.Context
	rangeallocation.RangeRegistry
}

// Get implements rangeallocation.RangeRegistry.
func (r *record) Get() (*core.RangeAllocation, error) {
	allocation, err := r.RangeRegistry.Get()
	if r.ctx.Err() != nil {
		return &core.RangeAllocation{}, nil
	}
	return allocation, err
}

// CreateOrUpdate implements rangeallocation.RangeRegistry.
func (r *record) CreateOrUpdate(allocation *core.RangeAllocation) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.RangeRegistry.CreateOrUpdate(allocation)
}
