package routes

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	generic "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

type registryOver struct {
	rest.Storage
	store *generic.Store
}

// TestUndecorated finds the decorator wherever a registry has its store, and takes
// what has none that it can see for one that changes its answers.
func TestUndecorated(t *testing.T) {
	plain, decorated := &generic.Store{}, &generic.Store{Decorator: func(runtime.Object) {}}
	for name, c := range map[string]struct {
		storage rest.Storage
		want    bool
	}{
		"store":                 {plain, true},
		"decorated store":       {decorated, false},
		"in a field":            {&registryOver{store: plain}, true},
		"decorated, in a field": {&registryOver{store: decorated}, false},
		"no store":              {&registryOver{}, false},
	} {
		if got := undecorated(c.storage); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
