package registry

import (
	"context"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/generic"
	upstream "k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/rangeallocation"
	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	netutils "k8s.io/utils/net"
)

// Ranges says what Services are given addresses and ports from. It must be the
// same on all nodes.
type Ranges struct {
	ClusterIPs net.IPNet
	NodePorts  utilnet.PortRange
}

// DefaultRanges are kube-apiserver's defaults.
func DefaultRanges() Ranges {
	return Ranges{
		ClusterIPs: net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(24, 32)},
		NodePorts:  utilnet.PortRange{Base: 30000, Size: 2768},
	}
}

// minServiceIPs is the smallest range of which one address is the servers' own
// and some are left.
const minServiceIPs = 8

// Validate says what is wrong with the ranges.
func (r Ranges) Validate() error {
	if size := netutils.RangeSize(&r.ClusterIPs); size < minServiceIPs {
		return fmt.Errorf("--service-cluster-ip-range %s has %d addresses, want at least %d", &r.ClusterIPs, size, minServiceIPs)
	}
	if r.NodePorts.Size < 1 {
		return errors.New("--service-node-port-range is empty")
	}
	return nil
}

// ServersIP is the address of the Service that stands for the servers: the
// first of the range, as with kube-apiserver.
func (r Ranges) ServersIP() net.IP {
	return netutils.AddIPOffset(netutils.BigForIP(r.ClusterIPs.IP), 1)
}

// Allocators give out what Services ask for, on any node.
type Allocators struct {
	IPs   *ipallocator.Range
	Ports *portallocator.PortAllocator
	// ClusterIPs and NodePorts are the allocators' records, for their repair.
	ClusterIPs, NodePorts rangeallocation.RangeRegistry
}

// NewAllocators makes allocators whose record of what is given out is in the
// replicated state: one object for each range.
func NewAllocators(options generic.RESTOptionsGetter, ranges Ranges) (*Allocators, error) {
	store, err := openRanges(options)
	if err != nil {
		return nil, err
	}
	a := &Allocators{}
	ips, ports := &allocation{store: store, key: rangesPrefix + "/serviceips"}, &allocation{store: store, key: rangesPrefix + "/servicenodeports"}
	a.ClusterIPs, a.NodePorts = ips, ports
	if a.IPs, err = ipallocator.New(&ranges.ClusterIPs, ips.over); err != nil {
		return nil, fmt.Errorf("addresses of services: %w", err)
	}
	if a.Ports, err = portallocator.New(ranges.NodePorts, ports.over); err != nil {
		return nil, fmt.Errorf("node ports of services: %w", err)
	}
	return a, nil
}

// rangeAllocations is what the records are; they are not served.
var rangeAllocations = core.Resource("rangeallocations")

// rangesPrefix is where upstream keeps ranges, too.
const rangesPrefix = "/ranges"

func openRanges(options generic.RESTOptionsGetter) (upstream.Interface, error) {
	config, err := options.GetRESTOptions(rangeAllocations, &core.RangeAllocation{})
	if err != nil {
		return nil, err
	}
	newFunc := func() runtime.Object { return &core.RangeAllocation{} }
	store, _, err := config.Decorator(config.StorageConfig, rangesPrefix, nil, newFunc, newFunc, nil, nil, nil)
	return store, err
}

// allocation is what has been given out of one range: an object that all nodes
// change by compare-and-swap. Upstream's allocator does the same on etcd, and
// makes its own client for it. Nothing is kept here between calls.
type allocation struct {
	store upstream.Interface
	key   string
	blank func() allocator.Snapshottable
}

var (
	_ allocator.Interface           = (*allocation)(nil)
	_ rangeallocation.RangeRegistry = (*allocation)(nil)
)

// over is an allocator.AllocatorWithOffsetFactory.
func (a *allocation) over(size int, spec string, offset int) (allocator.Interface, error) {
	a.blank = func() allocator.Snapshottable { return allocator.NewAllocationMapWithOffset(size, spec, offset) }
	return a, nil
}

// bitmap is the state that an object holds. An object that is not there yet
// holds none.
func (a *allocation) bitmap(object *core.RangeAllocation) (allocator.Snapshottable, error) {
	bitmap := a.blank()
	if object.ResourceVersion == "" {
		return bitmap, nil
	}
	if err := bitmap.Restore(object.Range, object.Data); err != nil {
		return nil, fmt.Errorf("%s holds %s, which is not the range of this node's flags: %w", a.key, object.Range, err)
	}
	return bitmap, nil
}

// errUnchanged ends a change that has nothing to write.
var errUnchanged = errors.New("nothing to write")

// change lets fn change the newest state, again when another node was faster.
// fn says whether there is something to write.
func (a *allocation) change(fn func(allocator.Snapshottable) (bool, error)) error {
	update := func(input runtime.Object) (runtime.Object, error) {
		object := input.(*core.RangeAllocation)
		bitmap, err := a.bitmap(object)
		if err != nil {
			return nil, err
		}
		changed, err := fn(bitmap)
		if err != nil {
			return nil, err
		}
		if !changed {
			return nil, errUnchanged
		}
		object.Range, object.Data = bitmap.Snapshot()
		return object, nil
	}
	err := a.store.GuaranteedUpdate(context.Background(), a.key, &core.RangeAllocation{}, true, nil, upstream.SimpleUpdate(update), nil)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return storeerr.InterpretUpdateError(err, rangeAllocations, a.key)
}

// Allocate takes one item; false: somebody has it.
func (a *allocation) Allocate(item int) (ok bool, err error) {
	err = a.change(func(bitmap allocator.Snapshottable) (bool, error) {
		ok, err = bitmap.Allocate(item)
		return ok, err
	})
	return ok && err == nil, err
}

// AllocateNext takes any item; false: there is none left.
func (a *allocation) AllocateNext() (item int, ok bool, err error) {
	err = a.change(func(bitmap allocator.Snapshottable) (bool, error) {
		item, ok, err = bitmap.AllocateNext()
		return ok, err
	})
	return item, ok && err == nil, err
}

// Release gives an item back; one that is free stays so.
func (a *allocation) Release(item int) error {
	return a.change(func(bitmap allocator.Snapshottable) (bool, error) {
		return bitmap.Has(item), bitmap.Release(item)
	})
}

// ForEach, Has and Free are of the newest state. They have no way to say that
// it cannot be read, and then answer for a range of which all is given out.
func (a *allocation) ForEach(fn func(int)) {
	if bitmap, err := a.read(); err == nil {
		bitmap.ForEach(fn)
	}
}

// Has implements allocator.Interface.
func (a *allocation) Has(item int) bool {
	bitmap, err := a.read()
	return err != nil || bitmap.Has(item)
}

// Free implements allocator.Interface.
func (a *allocation) Free() int {
	bitmap, err := a.read()
	if err != nil {
		return 0
	}
	return bitmap.Free()
}

func (a *allocation) read() (allocator.Snapshottable, error) {
	object, err := a.Get()
	if err != nil {
		return nil, err
	}
	return a.bitmap(object)
}

// Destroy implements allocator.Interface.
func (a *allocation) Destroy() {}

// Get implements rangeallocation.RangeRegistry.
func (a *allocation) Get() (*core.RangeAllocation, error) {
	object := &core.RangeAllocation{}
	err := a.store.Get(context.Background(), a.key, upstream.GetOptions{IgnoreNotFound: true}, object)
	return object, storeerr.InterpretGetError(err, rangeAllocations, a.key)
}

// CreateOrUpdate implements rangeallocation.RangeRegistry: it writes what the
// repair found, unless the object has changed since that read it.
func (a *allocation) CreateOrUpdate(repaired *core.RangeAllocation) error {
	update := func(input runtime.Object) (runtime.Object, error) {
		if now := input.(*core.RangeAllocation).ResourceVersion; now != repaired.ResourceVersion {
			return nil, apierrors.NewConflict(rangeAllocations, a.key, fmt.Errorf("it is at version %s, not %s", now, repaired.ResourceVersion))
		}
		return repaired, nil
	}
	err := a.store.GuaranteedUpdate(context.Background(), a.key, &core.RangeAllocation{}, true, nil, upstream.SimpleUpdate(update), nil)
	return storeerr.InterpretUpdateError(err, rangeAllocations, a.key)
}
