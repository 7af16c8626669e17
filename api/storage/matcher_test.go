package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/storage"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/pod"

	"kontiki/api/registry"
	"kontiki/api/storage"
)

// TestSelectedAsStored: lists and watches select the same pods whether what they select by is read
// where it is stored or of the decoded object.
func TestSelectedAsStored(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	luck := rand.New(rand.NewPCG(seed, 0))
	node, _ := newReplicas(0)
	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	s := serve(t, node.backend(), resource, "Pod")
	lives(t, s, luck)
	decoding := decodingStore(t, s, node.backend(), resource.GroupResource())
	some := labels.SelectorFromSet(labels.Set{"l": "1"})
	for _, pred := range []upstream.SelectionPredicate{
		{Label: labels.Everything(), Field: fields.OneTermEqualSelector("spec.nodeName", "a")},
		{Label: labels.Everything(), Field: fields.OneTermEqualSelector("spec.nodeName", "")},
		{Label: labels.Everything(), Field: fields.OneTermNotEqualSelector("spec.nodeName", "a")},
		{Label: some, Field: fields.OneTermEqualSelector("spec.nodeName", "a")},
		{Label: labels.Everything(), Field: fields.ParseSelectorOrDie("spec.nodeName=b,metadata.name!=p1")},
		{Label: some, Field: fields.Everything()},
	} {
		pred.GetAttrs = pod.GetAttrs
		opts := upstream.ListOptions{Predicate: pred, Recursive: true, ResourceVersion: "1"}
		want, got := seen(t, decoding, opts), seen(t, s.store, opts)
		if !slices.Equal(got, want) {
			t.Errorf("%s, %s:\n%v, of decoded objects\n%v", pred.Label, pred.Field, got, want)
		}
	}
}

// lives are of pods that come, move between nodes, and go.
func lives(t *testing.T, s served, luck *rand.Rand) {
	t.Helper()
	for i := range 60 {
		random := s.any(t, luck.Int64()).(*core.Pod)
		random.Name = fmt.Sprintf("p%d", luck.IntN(8))
		random.Labels = map[string]string{"l": fmt.Sprint(luck.IntN(2))}
		random.Spec.NodeName = []string{"", "a", "b"}[luck.IntN(3)]
		key := "/pods/ns/" + random.Name
		var err error
		if i%5 == 4 {
			nobody := func(context.Context, runtime.Object) error { return nil }
			err = s.store.Delete(t.Context(), key, s.new(), nil, nobody, nil, upstream.DeleteOptions{})
		} else {
			err = s.store.GuaranteedUpdate(t.Context(), key, s.new(), true, nil, func(runtime.Object, upstream.ResponseMeta) (runtime.Object, *uint64, error) {
				return random, nil, nil
			}, nil)
		}
		if err != nil && !upstream.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// decodingStore is of the same pods, and knows nothing of where they have what.
func decodingStore(t *testing.T, s served, backend storage.Backend, resource schema.GroupResource) *storage.Store {
	t.Helper()
	options, err := registry.Options{Backend: backend}.GetRESTOptions(resource, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.New(storage.Config{
		Backend: backend, GroupResource: resource, Codec: options.StorageConfig.Codec, NewFunc: s.new,
		NewListFunc: func() runtime.Object { return &core.PodList{} }, Root: "/core", ResourcePrefix: "/pods",
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// seen is what a list and a watch of all that happened show.
func seen(t *testing.T, store upstream.Interface, opts upstream.ListOptions) (seen []string) {
	t.Helper()
	watched, err := store.Watch(t.Context(), "/pods/", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	opts.ResourceVersion = ""
	list := &core.PodList{}
	if err := store.GetList(t.Context(), "/pods/", opts, list); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, item := range list.Items {
		seen = append(seen, fmt.Sprintf("%s@%s", item.Name, item.ResourceVersion))
		left[seen[len(seen)-1]] = true
	}
	for len(left) > 0 { // those of the list are shown last, each as it is there
		event := <-watched.ResultChan()
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		now := fmt.Sprintf("%s@%s", object.GetName(), object.GetResourceVersion())
		seen = append(seen, fmt.Sprintf("%s %s", event.Type, now))
		delete(left, now)
	}
	return seen
}

// TestPath: what is not there, or is no protobuf, is not found.
func TestPath(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"k8s\x00\x12\x06\x0a\x04\x12\x02ab":                 "ab",
		"k8s\x00\x12\x0a\x20\x07\x18\x01\x0a\x04\x12\x02ab": "ab", // behind two numbers
		"k8s\x00\x12\x04\x0a\x02\x12\x00":                   "",
		"k8s\x00\x12\x02\x0a\x00":                           "absent",
		"k8s\x00\x12\x00":                                   "absent",
		"k8s\x00\x12\x04\x0a\x02\x10\x05":                   "absent", // a number
		"k8s\x00\x12\x04\x0a\x09\x12\x02":                   "absent", // cut off
		"k8s\x00":                                           "absent",
		`{"kind":"Pod"}`:                                    "absent",
	} {
		got, ok := storage.Path{1, 2}.In([]byte(stored))
		if !ok {
			got = "absent"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", stored, got, want)
		}
	}
	if _, ok := storage.Path(nil).In([]byte("k8s\x00\x12\x02\x0a\x00")); ok {
		t.Error("no path leads somewhere")
	}
}
