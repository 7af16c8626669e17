package registry

import (
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	kubelet "k8s.io/kubernetes/pkg/kubelet/client"
	leases "k8s.io/kubernetes/pkg/registry/coordination/lease/storage"
	endpoints "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	events "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespaces "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodes "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pods "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	services "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// row is one resource with its subresources.
type row struct {
	version schema.GroupVersion
	// open returns the resource's storage under its name, and that of its
	// subresources under name/subresource.
	open func(*opener) (map[string]rest.Storage, error)
}

// table lists what is served. Rows are opened in order: pods find their kubelet
// through the nodes above them, services their pods and endpoints.
func table() []row {
	return []row{
		{corev1.SchemeGroupVersion, openNamespaces},
		{corev1.SchemeGroupVersion, openNodes},
		{corev1.SchemeGroupVersion, openPods},
		{corev1.SchemeGroupVersion, openEndpoints},
		{corev1.SchemeGroupVersion, openServices},
		{corev1.SchemeGroupVersion, openEvents},
		{eventsv1.SchemeGroupVersion, openEvents},
		{coordinationv1.SchemeGroupVersion, openLeases},
	}
}

// Group is everything served under one group version.
type Group struct {
	Version schema.GroupVersion
	Storage map[string]rest.Storage
}

// Config is what the constructors in the table need beside a place to store.
type Config struct {
	Options    generic.RESTOptionsGetter
	Authorizer authorizer.Authorizer
	EventTTL   time.Duration
	// Kubelet is for logs and the like; ProxyTransport for the proxy
	// subresources.
	Kubelet        Kubelet
	ProxyTransport http.RoundTripper
	Allocators     *Allocators // for services
}

// Open makes every row's storage, in the order of the table.
func Open(cfg Config) ([]Group, error) {
	o := &opener{Config: cfg}
	var groups []Group
	for _, r := range table() {
		storage, err := r.open(o)
		if err != nil {
			return nil, fmt.Errorf("open storage of %s: %w", r.version, err)
		}
		groups = add(groups, r.version, storage)
	}
	return groups, nil
}

func add(groups []Group, version schema.GroupVersion, storage map[string]rest.Storage) []Group {
	for i := range groups {
		if groups[i].Version == version {
			for name, s := range storage {
				groups[i].Storage[name] = s
			}
			return groups
		}
	}
	return append(groups, Group{Version: version, Storage: storage})
}

// opener carries what a later row needs of an earlier one.
type opener struct {
	Config
	connections kubelet.ConnectionInfoGetter
	pods        *pods.REST
	endpoints   *endpoints.REST
}

func openNamespaces(o *opener) (map[string]rest.Storage, error) {
	store, status, finalize, err := namespaces.NewREST(o.Options)
	if err != nil {
		return nil, err
	}
	return map[string]rest.Storage{
		"namespaces":          store,
		"namespaces/status":   status,
		"namespaces/finalize": finalize,
	}, nil
}

func openNodes(o *opener) (map[string]rest.Storage, error) {
	store, err := nodes.NewStorage(o.Options, o.Kubelet.config(), o.ProxyTransport)
	if err != nil {
		return nil, err
	}
	o.connections = store.KubeletConnectionInfo
	return map[string]rest.Storage{
		"nodes":        store.Node,
		"nodes/status": store.Status,
		"nodes/proxy":  store.Proxy,
	}, nil
}

func openPods(o *opener) (map[string]rest.Storage, error) {
	store, err := pods.NewStorage(o.Options, o.connections, o.ProxyTransport, noBudgets{}, o.Authorizer)
	if err != nil {
		return nil, err
	}
	o.pods = store.Pod
	return map[string]rest.Storage{
		"pods":                     store.Pod,
		"pods/status":              store.Status,
		"pods/ephemeralcontainers": store.EphemeralContainers,
		"pods/resize":              store.Resize,
		"pods/log":                 store.Log,
		"pods/binding":             store.Binding,
		"pods/eviction":            store.Eviction,
		"pods/attach":              store.Attach,
		"pods/exec":                store.Exec,
		"pods/portforward":         store.PortForward,
		"pods/proxy":               store.Proxy,
		"bindings":                 store.LegacyBinding,
	}, nil
}

func openEndpoints(o *opener) (map[string]rest.Storage, error) {
	store, err := endpoints.NewREST(o.Options)
	o.endpoints = store
	return map[string]rest.Storage{"endpoints": store}, err
}

func openServices(o *opener) (map[string]rest.Storage, error) {
	family := o.Allocators.IPs.IPFamily()
	addresses := map[core.IPFamily]ipallocator.Interface{family: o.Allocators.IPs}
	store, status, proxy, err := services.NewREST(o.Options, family, addresses, o.Allocators.Ports, o.endpoints, o.pods, o.ProxyTransport)
	return map[string]rest.Storage{"services": store, "services/status": status, "services/proxy": proxy}, err
}

// openEvents serves both event groups: their registries share one place to
// store, so an event made through one is read through the other.
func openEvents(o *opener) (map[string]rest.Storage, error) {
	store, err := events.NewREST(o.Options, uint64(o.EventTTL.Seconds()))
	return map[string]rest.Storage{"events": store}, err
}

func openLeases(o *opener) (map[string]rest.Storage, error) {
	store, err := leases.NewREST(o.Options)
	return map[string]rest.Storage{"leases": store}, err
}
