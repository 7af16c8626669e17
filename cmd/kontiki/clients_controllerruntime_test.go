package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"
)

// TestControllerRuntime writes through controller-runtime's client at each node,
// in every way that it has, and reads all of it from caches at all nodes, which
// live through the leader's death.
func TestControllerRuntime(t *testing.T) {
	t.Parallel()
	runtimelog.SetLogger(klog.Background()) // or it complains of having none
	c := newCluster(t, 3, nil)
	leader := c.leader()
	var clients []client.Client
	var caches []cache.Cache
	for i := range c.nodes {
		clients = append(clients, newRuntimeClient(c, i))
		caches = append(caches, startCache(c, i))
	}
	for i, writer := range clients {
		for name, write := range runtimeWrites {
			if err := write(t.Context(), writer, fmt.Sprintf("%s-%d", name, i)); err != nil {
				t.Errorf("%s at node %d: %v", name, i, err)
			}
		}
	}
	want := len(runtimeWrites) * len(clients)
	for i, reader := range caches {
		until(t, func() error { return cached(t.Context(), reader, want) })
		if err := readsAgree(t.Context(), clients[i], reader, "create-0"); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
	c.crash(leader)
	survivor := c.up()[0]
	until(t, func() error { return runtimeWrites["apply"](t.Context(), clients[survivor], "apply-after") })
	for _, i := range c.up() {
		until(t, func() error { return cached(t.Context(), caches[i], want+1) })
	}
	c.start(leader)
	until(t, func() error { return cached(t.Context(), caches[leader], want+1) })
	c.checkEqual()
}

func newRuntimeClient(c *testCluster, node int) client.Client {
	c.t.Helper()
	made, err := client.New(c.clientConfig(node), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

// startCache starts a cache with an index and waits until it knows what is there.
func startCache(c *testCluster, node int) cache.Cache {
	c.t.Helper()
	made, err := cache.New(c.clientConfig(node), cache.Options{Scheme: scheme.Scheme})
	if err != nil {
		c.t.Fatal(err)
	}
	holder := func(obj client.Object) []string {
		if lease, ok := obj.(*coordinationv1.Lease); ok && lease.Spec.HolderIdentity != nil {
			return []string{*lease.Spec.HolderIdentity}
		}
		return nil
	}
	if err := made.IndexField(c.t.Context(), &coordinationv1.Lease{}, "spec.holderIdentity", holder); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- made.Start(c.t.Context()) }()
	c.t.Cleanup(func() { // the test's context has ended before
		if err := <-ended; err != nil {
			c.t.Errorf("the cache of node %d: %v", node, err)
		}
	})
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for _, obj := range []client.Object{&coordinationv1.Lease{}, runtimeUntyped(""), runtimePartial("")} {
		if _, err := made.GetInformer(ctx, obj); err != nil {
			c.t.Fatal(err)
		}
	}
	if !made.WaitForCacheSync(ctx) {
		c.t.Fatalf("the cache of node %d does not sync", node)
	}
	return made
}

func runtimeLease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"made": "here"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr("start")},
	}
}

func runtimeUntyped(name string) *unstructured.Unstructured {
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	lease.SetNamespace("default")
	lease.SetName(name)
	return lease
}

func runtimePartial(name string) *metav1.PartialObjectMetadata {
	lease := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return lease
}

// runtimeWrites are the ways to write. Each leaves one lease of that name, held
// by "end" and labelled.
var runtimeWrites = map[string]func(ctx context.Context, c client.Client, name string) error{
	"create": func(ctx context.Context, c client.Client, name string) error {
		if err := createEnded(ctx, c, name); err != nil {
			return err
		}
		if err := c.Create(ctx, runtimeLease(name)); !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("created twice: %w", err)
		}
		return nil
	},
	"update": func(ctx context.Context, c client.Client, name string) error {
		lease := runtimeLease(name)
		if err := c.Create(ctx, lease); err != nil {
			return err
		}
		stale := lease.DeepCopy()
		lease.Spec.HolderIdentity = ptr("end")
		if err := c.Update(ctx, lease); err != nil {
			return err
		}
		if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
			return fmt.Errorf("updated what is stale: %w", err)
		}
		return nil
	},
	"merge": func(ctx context.Context, c client.Client, name string) error {
		lease := runtimeLease(name)
		if err := c.Create(ctx, lease); err != nil {
			return err
		}
		before := lease.DeepCopy()
		lease.Spec.HolderIdentity = ptr("end")
		if err := c.Patch(ctx, lease, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		before = lease.DeepCopy()
		lease.Spec.HolderIdentity = ptr("middle")
		if err := c.Patch(ctx, lease, client.StrategicMergeFrom(before)); err != nil {
			return err
		}
		return c.Patch(ctx, lease, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/holderIdentity","value":"end"}]`)))
	},
	"apply": func(ctx context.Context, c client.Client, name string) error {
		applied := applycoordination.Lease(name, "default").WithLabels(map[string]string{"made": "here"}).
			WithSpec(applycoordination.LeaseSpec().WithHolderIdentity("end"))
		if err := c.Apply(ctx, applied, client.FieldOwner("one"), client.ForceOwnership); err != nil {
			return err
		}
		applied.Spec.WithHolderIdentity("other")
		if err := c.Apply(ctx, applied, client.FieldOwner("two")); !apierrors.IsConflict(err) {
			return fmt.Errorf("took another one's field: %w", err)
		}
		return nil
	},
	"unstructured": func(ctx context.Context, c client.Client, name string) error {
		lease := runtimeUntyped(name)
		lease.SetLabels(map[string]string{"made": "here"})
		lease.Object["spec"] = map[string]any{"holderIdentity": "end"}
		return c.Create(ctx, lease)
	},
	"dryrun": func(ctx context.Context, c client.Client, name string) error {
		if err := client.NewDryRunClient(c).Create(ctx, runtimeLease(name)); err != nil {
			return err
		}
		return createEnded(ctx, c, name)
	},
	"delete": func(ctx context.Context, c client.Client, name string) error {
		for _, suffix := range []string{"-a", "-b", ""} {
			lease := runtimeLease(name + suffix)
			lease.Labels["batch"], lease.Spec.HolderIdentity = name+suffix, ptr("end")
			if err := c.Create(ctx, lease); err != nil {
				return err
			}
		}
		if err := c.Delete(ctx, runtimePartial(name+"-a")); err != nil {
			return err
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, runtimePartial(name+"-a"))); err != nil {
			return err
		}
		return c.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace("default"), client.MatchingLabels{"batch": name + "-b"})
	},
	"status": func(ctx context.Context, c client.Client, name string) error {
		pod := newPod()
		pod.Namespace, pod.Name = "default", name
		if err := c.Create(ctx, pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		if err := c.Status().Update(ctx, pod); err != nil {
			return err
		}
		before := pod.DeepCopy()
		pod.Status.Message, pod.Spec.NodeName = "baked", "ignored"
		if err := c.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
			return err
		}
		if pod.Status.Message != "baked" || pod.Spec.NodeName != "" {
			return fmt.Errorf("node %q, status %+v", pod.Spec.NodeName, pod.Status)
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-a"}}
		if err := c.SubResource("binding").Create(ctx, pod, binding); err != nil {
			return err
		}
		return createEnded(ctx, c, name)
	},
}

// createEnded makes the lease that each way to write leaves.
func createEnded(ctx context.Context, c client.Client, name string) error {
	lease := runtimeLease(name)
	lease.Spec.HolderIdentity = ptr("end")
	return c.Create(ctx, lease)
}

// cached compares a cache's three views of the leases with how many there are.
func cached(ctx context.Context, reader cache.Cache, want int) error {
	var typed coordinationv1.LeaseList
	if err := reader.List(ctx, &typed, client.InNamespace("default"), client.MatchingFields{"spec.holderIdentity": "end"}); err != nil {
		return err
	}
	untyped := &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
	if err := reader.List(ctx, untyped, client.MatchingLabels{"made": "here"}); err != nil {
		return err
	}
	partial := &metav1.PartialObjectMetadataList{}
	partial.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
	if err := reader.List(ctx, partial, client.InNamespace("default")); err != nil {
		return err
	}
	if len(typed.Items) != want || len(untyped.Items) != want || len(partial.Items) != want {
		return fmt.Errorf("%d leases by index, %d by label, %d in the namespace, want %d", len(typed.Items), len(untyped.Items), len(partial.Items), want)
	}
	return nil
}

// readsAgree: the cache has what the server says.
func readsAgree(ctx context.Context, c client.Client, reader cache.Cache, name string) error {
	key := client.ObjectKey{Namespace: "default", Name: name}
	var live, known coordinationv1.Lease
	if err := errors.Join(c.Get(ctx, key, &live), reader.Get(ctx, key, &known)); err != nil {
		return err
	}
	if live.UID != known.UID || live.ResourceVersion != known.ResourceVersion {
		return fmt.Errorf("the server has %s, the cache %s", live.ResourceVersion, known.ResourceVersion)
	}
	return nil
}
