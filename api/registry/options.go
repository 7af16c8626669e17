package registry

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	upstream "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"kontiki/api/storage"
)

const (
	// ProtobufMedia is the encoding in the log, as upstream stores built-in types.
	ProtobufMedia = "application/vnd.kubernetes.protobuf"
	// deleteWorkers is how many objects of a collection are deleted at a time:
	// upstream's default. Proposals of one collection share log batches.
	deleteWorkers = 1
)

// Options gives every registry a store on the node's replicated state. It is
// the generic.RESTOptionsGetter of Open.
type Options struct {
	Backend   storage.Backend
	Encodings *storage.Encodings // of all stores together
}

var _ generic.RESTOptionsGetter = Options{}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o Options) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	codec, versioner, err := storageCodec(resource)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("codec of %s: %w", resource, err)
	}
	config := storagebackend.NewDefaultConfig("", codec)
	config.EncodeVersioner = versioner // discovery tells its hash
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               o.decorate,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: deleteWorkers,
		ResourcePrefix:          "/" + resource.Resource,
	}, nil
}

// decorate makes the store that a registry asked for. Key and attribute
// functions reach it through the registry's own calls.
func (o Options) decorate(
	config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ upstream.AttrFunc, triggers upstream.IndexerFuncs, _ *cache.Indexers,
) (upstream.Interface, factory.DestroyFunc, error) {
	version, err := storedVersion(config.GroupResource)
	if err != nil {
		return nil, nil, err
	}
	store, err := storage.New(storage.Config{
		Backend:        o.Backend,
		Encodings:      o.Encodings,
		GroupResource:  config.GroupResource,
		Codec:          config.Codec,
		StoredAs:       ProtobufEncoder(NewSerializer(), version).Identifier(),
		Release:        Release,
		NewFunc:        newFunc,
		NewListFunc:    newListFunc,
		Root:           root(config.GroupResource.Group),
		ResourcePrefix: prefix,
		Triggers:       triggers,
		TriggerPaths:   triggerPaths(config.GroupResource),
		Uncached:       uncached(config.GroupResource),
	})
	return store, func() {}, err
}

// ProtobufEncoder is that of answers in protobuf, nil if there is none.
func ProtobufEncoder(codecs runtime.NegotiatedSerializer, version schema.GroupVersion) runtime.Encoder {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), ProtobufMedia)
	if !ok {
		return nil
	}
	return codecs.EncoderForVersion(info.Serializer, version)
}

// uncached names what upstream serves without a watch cache, which clients can
// tell: see storage.Config.
func uncached(resource schema.GroupResource) bool { return resource.Resource == "events" }

// triggerPaths leads to a pod's spec.nodeName, by which kubelets watch: the field numbers of
// k8s.io/api/core/v1.
func triggerPaths(resource schema.GroupResource) map[string]storage.Path {
	if resource != core.Resource("pods") {
		return nil
	}
	return map[string]storage.Path{"spec.nodeName": {2, 10}}
}

// root keeps resources of the same name in different groups apart.
func root(group string) string {
	if group == "" {
		return "/core"
	}
	return "/" + group
}

// storageCodec encodes in the group's preferred version and decodes to the
// internal one that registries work on.
func storageCodec(resource schema.GroupResource) (runtime.Codec, runtime.GroupVersioner, error) {
	version, err := storedVersion(resource)
	if err != nil {
		return nil, nil, err
	}
	return serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  ProtobufMedia,
		StorageSerializer: legacyscheme.Codecs,
		StorageVersion:    version,
		MemoryVersion:     schema.GroupVersion{Group: resource.Group, Version: runtime.APIVersionInternal},
	})
}

// storedVersion is the version that a resource is stored in.
func storedVersion(resource schema.GroupResource) (schema.GroupVersion, error) {
	versions := legacyscheme.Scheme.PrioritizedVersionsForGroup(resource.Group)
	if len(versions) == 0 {
		return schema.GroupVersion{}, fmt.Errorf("no version of group %q is registered", resource.Group)
	}
	return versions[0], nil
}
