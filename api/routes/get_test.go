package routes

import (
	"net/http/httptest"
	"testing"

	"kontiki/api/registry"
)

// TestUsualOptions: whatever is not just what programs send is left to upstream.
func TestUsualOptions(t *testing.T) {
	for _, c := range []struct {
		query, accept, version string
		usual                  bool
	}{
		{"", registry.ProtobufMedia, "", true},
		{"resourceVersion=", registry.ProtobufMedia, "", true},
		{"resourceVersion=0", registry.ProtobufMedia + ",application/json", "0", true},
		{"resourceVersion=abc", registry.ProtobufMedia, "abc", true}, // the store says what is wrong with it
		{"resourceVersion=1&timeout=1s", registry.ProtobufMedia, "", false},
		{"resourceVersion=%31", registry.ProtobufMedia, "", false},
		{"export=true", registry.ProtobufMedia, "", false},
		{"resourceVersion", registry.ProtobufMedia, "", false},
		{"", "application/json", "", false},
		{"", "", "", false},
		{"", registry.ProtobufMedia + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", false},
		{"", registry.ProtobufMedia + ";q=0.1,application/json", "", false},
	} {
		r := httptest.NewRequest("GET", "/api/v1/namespaces/a?"+c.query, nil)
		r.Header.Set("Accept", c.accept)
		options, usual := usualOptions(r)
		if usual != c.usual || usual && options.ResourceVersion != c.version {
			t.Errorf("%q, %q: %v %v", c.query, c.accept, options, usual)
		}
	}
}
