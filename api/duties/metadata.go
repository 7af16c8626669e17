package duties

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
)

// Source is a kind's storage as far as an informer needs it.
type Source interface {
	rest.Lister
	rest.Watcher
}

// InProcess returns a metadata client that lists and watches all objects of a kind where
// they are: in this process, decoded already. The garbage collector wants to know of every
// write, and to encode it and to decode it again cost a fifth of what the write itself did.
// Everything else goes through client.
func InProcess(client metadata.Interface, sources map[schema.GroupVersionResource]Source) metadata.Interface {
	return inProcess{client, sources}
}

type inProcess struct {
	metadata.Interface
	sources map[schema.GroupVersionResource]Source
}

// Resource implements metadata.Interface.
func (c inProcess) Resource(resource schema.GroupVersionResource) metadata.Getter {
	getter := c.Interface.Resource(resource)
	if source, ok := c.sources[resource]; ok {
		return inProcessKind{getter, source}
	}
	return getter
}

type inProcessKind struct {
	metadata.Getter
	source Source
}

// Namespace implements metadata.Getter; "" is all of them, and what informers ask for.
func (k inProcessKind) Namespace(name string) metadata.ResourceInterface {
	if name == "" {
		return k
	}
	return k.Getter.Namespace(name)
}

// List implements metadata.ResourceInterface.
func (k inProcessKind) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	options, err := internalOptions(&opts)
	if err != nil {
		return nil, err
	}
	found, err := k.source.List(request.WithNamespace(ctx, ""), options)
	if err != nil {
		return nil, err
	}
	listed, err := meta.ListAccessor(found)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{
		ResourceVersion: listed.GetResourceVersion(), Continue: listed.GetContinue(), RemainingItemCount: listed.GetRemainingItemCount(),
	}}
	err = meta.EachListItem(found, func(obj runtime.Object) error {
		item, err := partial(obj)
		if err == nil {
			list.Items = append(list.Items, *item)
		}
		return err
	})
	return list, err
}

// Watch implements metadata.ResourceInterface.
func (k inProcessKind) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	options, err := internalOptions(&opts)
	if err != nil {
		return nil, err
	}
	all, err := k.source.Watch(request.WithNamespace(ctx, ""), options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(all, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error {
			return event, true
		}
		item, err := partial(event.Object)
		if err != nil {
			return watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: 500}}, true
		}
		event.Object = item
		return event, true
	}), nil
}

func internalOptions(opts *metav1.ListOptions) (*internalversion.ListOptions, error) {
	internal := &internalversion.ListOptions{}
	if err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(opts, internal, nil); err != nil {
		return nil, fmt.Errorf("list options: %w", err)
	}
	return internal, nil
}

// partial is what the garbage collector reads of an object, which is shared and stays as
// it is. Who owns its fields is left out: that is often half of all metadata.
func partial(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	item := meta.AsPartialObjectMetadata(m)
	item.ManagedFields = nil
	return item, nil
}

// metadataInformers has informers of metadata only, also of kinds that a typed client knows.
type metadataInformers struct {
	metadatainformer.SharedInformerFactory
}

// ForResource implements informerfactory.InformerFactory.
func (f metadataInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return f.SharedInformerFactory.ForResource(resource), nil
}
