package duties

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	addresses "k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller"
	ports "k8s.io/kubernetes/pkg/registry/core/service/portallocator/controller"

	"kontiki/api/registry"
)

// repairInterval is upstream's: addresses and ports of services that were given
// out and are not used, or the reverse, as after a crash between two writes.
const repairInterval = 3 * time.Minute

// RepairServices runs upstream's repairs of what services were given. It returns
// when ctx ends.
func RepairServices(ctx context.Context, client kubernetes.Interface, allocators *registry.Allocators, ranges registry.Ranges) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	done := func() {}
	running.Go(func() {
		repair := addresses.NewRepair(repairInterval, client.CoreV1(), client.EventsV1(), &ranges.ClusterIPs, allocators.ClusterIPs, nil, nil)
		repair.RunUntil(done, stop)
	})
	running.Go(func() {
		repair := ports.NewRepair(repairInterval, client.CoreV1(), client.EventsV1(), ranges.NodePorts, allocators.NodePorts)
		repair.RunUntil(done, stop)
	})
	<-ctx.Done()
	close(stop)
	running.Wait()
}
