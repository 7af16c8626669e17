package routes

import (
	"net/http/httptest"
	"testing"
)

// TestUsualOptions: whatever is not just what programs send is left to upstream.
func TestUsualOptions(t *testing.T) {
	for _, c := range []struct {
		query, accept, version string
		usual                  bool
	}{
		{"", protobufMedia, "", true},
		{"resourceVersion=", protobufMedia, "", true},
		{"resourceVersion=0", protobufMedia + ",application/json", "0", true},
		{"resourceVersion=abc", protobufMedia, "abc", true}, // the store says what is wrong with it
		{"resourceVersion=1&timeout=1s", protobufMedia, "", false},
		{"resourceVersion=%31", protobufMedia, "", false},
		{"export=true", protobufMedia, "", false},
		{"resourceVersion", protobufMedia, "", false},
		{"", "application/json", "", false},
		{"", "", "", false},
		{"", protobufMedia + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", false},
		{"", protobufMedia + ";q=0.1,application/json", "", false},
	} {
		r := httptest.NewRequest("GET", "/api/v1/namespaces/a?"+c.query, nil)
		r.Header.Set("Accept", c.accept)
		options, usual := usualOptions(r)
		if usual != c.usual || usual && options.ResourceVersion != c.version {
			t.Errorf("%q, %q: %v %v", c.query, c.accept, options, usual)
		}
	}
}
