package registry

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// The types that the table serves, their conversions and defaults.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
)

// Scheme knows every type that the table serves, in all of its versions.
func Scheme() *runtime.Scheme { return legacyscheme.Scheme }

// ParameterCodec decodes query parameters.
func ParameterCodec() runtime.ParameterCodec { return legacyscheme.ParameterCodec }

// NewSerializer makes the encodings of requests and responses: JSON, YAML and
// protobuf, with lists streamed item by item as upstream does by default.
func NewSerializer() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(legacyscheme.Scheme,
		serializer.WithStreamingCollectionEncodingToJSON(),
		serializer.WithStreamingCollectionEncodingToProtobuf())
}
