package routes

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Upstream's router looks at media types before its handlers do, and more
// narrowly: application/* is not acceptable to it, for one. Clients see the
// difference, so it is made here as well.

// acceptable says whether an Accept header lets through one of the types. No
// types, or no header, means any.
func acceptable(types []string, header string) bool {
	return len(types) == 0 || header == "" || names(header, types) || names(header, []string{"*/*"})
}

// supported says whether a body's media type is one of the types, if it matters.
func supported(types []string, header string) bool {
	return len(types) == 0 || names(header, types)
}

// names says whether one of the types stands in a header's list. Parameters and
// qualities do not count.
func names(header string, types []string) bool {
	for _, named := range strings.Split(header, ",") {
		named, _, _ = strings.Cut(named, ";")
		if slices.Contains(types, strings.TrimSpace(named)) {
			return true
		}
	}
	return false
}

// objects are the media types of a response that is one object, streams those
// of one that may also be a watch.
func (t *target) objects() []string {
	types, _ := negotiation.MediaTypesForSerializer(t.Serializer)
	return types
}

func (t *target) streams() []string {
	types, streams := negotiation.MediaTypesForSerializer(t.Serializer)
	return append(types, streams...)
}

// producedBy puts before the usual types those that the storage itself names for
// a verb: a log is plain text.
func (t *target) producedBy(method string) []string {
	if meta, ok := t.storage.(rest.StorageMetadata); ok {
		return append(meta.ProducesMIMETypes(method), t.objects()...)
	}
	return t.objects()
}
