package duties

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	// collectWorkers and namespaceWorkers are upstream's defaults, halved and
	// more: requests here do not cross a network.
	collectWorkers   = 4
	namespaceWorkers = 2
	// discoveryInterval is how often the garbage collector looks for new kinds.
	// There are none without a new binary.
	discoveryInterval = 5 * time.Minute
	syncTimeout       = 30 * time.Second
	namespaceResync   = 5 * time.Minute
)

// controllers is what upstream's controllers need: clients, and informers that
// live as long as the duty.
type controllers struct {
	typed     kubernetes.Interface
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterface
	informers informers.SharedInformerFactory
	partial   metadataInformers
}

func newControllers(config *rest.Config, sources map[schema.GroupVersionResource]Source) (*controllers, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &controllers{
		typed:     typed,
		metadata:  meta,
		discovery: memory.NewMemCacheClient(typed.Discovery()),
		informers: informers.NewSharedInformerFactory(typed, 0),
		partial:   metadataInformers{metadatainformer.NewSharedInformerFactory(InProcess(meta, sources), 0)},
	}, nil
}

// Control runs upstream's garbage collector, which carries deletion policies to
// their end by following owner references, and its namespace controller, which
// empties a namespace that is being deleted. They learn of objects from sources.
// It returns when ctx has ended and they have stopped.
func Control(ctx context.Context, config *rest.Config, sources map[schema.GroupVersionResource]Source) error {
	c, err := newControllers(config, sources)
	if err != nil {
		return fmt.Errorf("clients for controllers: %w", err)
	}
	namespaced, err := c.namespacedResources(ctx)
	if err != nil {
		return nil // no longer the leader
	}
	discover := func() ([]*metav1.APIResourceList, error) { return namespaced, nil }
	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(c.discovery)
	collector, err := garbagecollector.NewGarbageCollector(ctx, c.typed, c.metadata, mapper,
		garbagecollector.DefaultIgnoredResources(), c.partial, started)
	if err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, c.typed, c.metadata,
		discover, c.informers.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	c.informers.Start(ctx.Done())
	c.partial.Start(ctx.Done())
	close(started)

	var running sync.WaitGroup
	running.Go(func() { collector.Run(ctx, collectWorkers, syncTimeout) })
	running.Go(func() { collector.Sync(ctx, c.discovery, discoveryInterval) })
	running.Go(func() { namespaces.Run(ctx, namespaceWorkers) })
	running.Wait()
	c.informers.Shutdown()
	c.partial.Shutdown()
	return nil
}

// namespacedResources asks what lives in namespaces until there is an answer or
// ctx ends. The namespace controller must not ask itself: told of nothing, as
// by a server that is stopping, it ends the process.
func (c *controllers) namespacedResources(ctx context.Context) (lists []*metav1.APIResourceList, err error) {
	err = wait.PollUntilContextCancel(ctx, retryInterval, true, func(context.Context) (bool, error) {
		found, err := c.discovery.ServerPreferredNamespacedResources()
		lists = found
		return err == nil && len(found) > 0, nil
	})
	return lists, err
}
