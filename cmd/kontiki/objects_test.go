package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// objects is a client of one kind in one namespace, whichever way it talks to
// the server.
type objects interface {
	create(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	get(ctx context.Context, name string) (runtime.Object, error)
	list(ctx context.Context, opts metav1.ListOptions) (items []runtime.Object, rv string, err error)
	watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	update(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	patch(ctx context.Context, name string, kind types.PatchType, body []byte) (runtime.Object, error)
	delete(ctx context.Context, name string) error
	deleteCollection(ctx context.Context, opts metav1.ListOptions) error
}

// transports are the ways to talk: what client-go's users do.
var transports = map[string]func(config *rest.Config, k kind, namespace string) (objects, error){
	"typed-json": func(config *rest.Config, k kind, namespace string) (objects, error) {
		return newTyped(config, "application/json", k, namespace)
	},
	"typed-protobuf": func(config *rest.Config, k kind, namespace string) (objects, error) {
		return newTyped(config, runtime.ContentTypeProtobuf, k, namespace)
	},
	"dynamic": newDynamic,
}

// typed is the client that typed clientsets are made of.
type typed struct {
	client    rest.Interface
	kind      kind
	namespace string
}

func newTyped(config *rest.Config, contentType string, k kind, namespace string) (objects, error) {
	config = rest.CopyConfig(config)
	config.ContentType = contentType
	config.AcceptContentTypes = contentType
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clients := map[string]rest.Interface{
		"":                    set.CoreV1().RESTClient(),
		"events.k8s.io":       set.EventsV1().RESTClient(),
		"coordination.k8s.io": set.CoordinationV1().RESTClient(),
	}
	return typed{clients[k.Group], k, namespace}, nil
}

func (c typed) request(verb string) *rest.Request {
	return c.client.Verb(verb).Resource(c.kind.resource).NamespaceIfScoped(c.namespace, !c.kind.clusterScoped)
}

func (c typed) into(ctx context.Context, request *rest.Request) (runtime.Object, error) {
	obj, err := scheme.Scheme.New(c.kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return obj, request.Do(ctx).Into(obj)
}

func (c typed) create(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return c.into(ctx, c.request("POST").Body(obj))
}

func (c typed) get(ctx context.Context, name string) (runtime.Object, error) {
	return c.into(ctx, c.request("GET").Name(name))
}

func (c typed) list(ctx context.Context, opts metav1.ListOptions) ([]runtime.Object, string, error) {
	list, err := scheme.Scheme.New(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err != nil {
		return nil, "", err
	}
	if err := c.request("GET").VersionedParams(&opts, scheme.ParameterCodec).Do(ctx).Into(list); err != nil {
		return nil, "", err
	}
	return itemsOf(list)
}

func (c typed) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.request("GET").VersionedParams(&opts, scheme.ParameterCodec).Watch(ctx)
}

func (c typed) update(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return c.into(ctx, c.request("PUT").Name(metaOf(obj).GetName()).Body(obj))
}

func (c typed) patch(ctx context.Context, name string, kind types.PatchType, body []byte) (runtime.Object, error) {
	opts := patchOptions(kind)
	request := c.request("PATCH").Name(name).VersionedParams(&opts, scheme.ParameterCodec)
	return c.into(ctx, request.SetHeader("Content-Type", string(kind)).Body(body))
}

func (c typed) delete(ctx context.Context, name string) error {
	return c.request("DELETE").Name(name).Body(&metav1.DeleteOptions{}).Do(ctx).Error()
}

func (c typed) deleteCollection(ctx context.Context, opts metav1.ListOptions) error {
	return c.request("DELETE").VersionedParams(&opts, scheme.ParameterCodec).Body(&metav1.DeleteOptions{}).Do(ctx).Error()
}

// untyped is the dynamic client.
type untyped struct {
	client dynamic.ResourceInterface
	kind   kind
}

func newDynamic(config *rest.Config, k kind, namespace string) (objects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if k.clusterScoped {
		return untyped{client.Resource(k.gvr()), k}, nil
	}
	return untyped{client.Resource(k.gvr()).Namespace(namespace), k}, nil
}

func (c untyped) convert(obj runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(c.kind.GroupVersionKind)
	return u, nil
}

func (c untyped) create(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := c.convert(obj)
	if err != nil {
		return nil, err
	}
	return c.client.Create(ctx, u, metav1.CreateOptions{})
}

func (c untyped) get(ctx context.Context, name string) (runtime.Object, error) {
	return c.client.Get(ctx, name, metav1.GetOptions{})
}

func (c untyped) list(ctx context.Context, opts metav1.ListOptions) ([]runtime.Object, string, error) {
	list, err := c.client.List(ctx, opts)
	if err != nil {
		return nil, "", err
	}
	return itemsOf(list)
}

func (c untyped) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return c.client.Watch(ctx, opts)
}

func (c untyped) update(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := c.convert(obj)
	if err != nil {
		return nil, err
	}
	return c.client.Update(ctx, u, metav1.UpdateOptions{})
}

func (c untyped) patch(ctx context.Context, name string, kind types.PatchType, body []byte) (runtime.Object, error) {
	return c.client.Patch(ctx, name, kind, body, patchOptions(kind))
}

func (c untyped) delete(ctx context.Context, name string) error {
	return c.client.Delete(ctx, name, metav1.DeleteOptions{})
}

func (c untyped) deleteCollection(ctx context.Context, opts metav1.ListOptions) error {
	return c.client.DeleteCollection(ctx, metav1.DeleteOptions{}, opts)
}

func patchOptions(kind types.PatchType) metav1.PatchOptions {
	if kind == types.ApplyPatchType {
		return metav1.PatchOptions{FieldManager: "test", Force: ptr(true)}
	}
	return metav1.PatchOptions{}
}

func itemsOf(list runtime.Object) ([]runtime.Object, string, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	if m.GetResourceVersion() == "" {
		return nil, "", fmt.Errorf("the list has no resource version")
	}
	return items, m.GetResourceVersion(), nil
}
