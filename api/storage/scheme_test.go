package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/api/storage"
)

// The stores of these tests hold upstream's example pods, in upstream's example
// encoding, as upstream's own tests of its stores do.
var codec = newCodec()

func newCodec() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).LegacyCodec(examplev1.SchemeGroupVersion)
}

// podStore makes a store of pods under root.
func podStore(t testing.TB, backend storage.Backend, root string, codec runtime.Codec, options ...func(*storage.Config)) *storage.Store {
	t.Helper()
	cfg := storage.Config{
		Backend:        backend,
		GroupResource:  schema.GroupResource{Resource: "pods"},
		Codec:          codec,
		NewFunc:        func() runtime.Object { return &example.Pod{} },
		NewListFunc:    func() runtime.Object { return &example.PodList{} },
		Root:           root,
		ResourcePrefix: "/pods",
		Triggers:       upstream.IndexerFuncs{"metadata.name": func(obj runtime.Object) string { return obj.(*example.Pod).Name }},
	}
	for _, option := range options {
		option(&cfg)
	}
	store, err := storage.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// uncached makes the store one that upstream would serve without a watch cache.
func uncached(cfg *storage.Config) { cfg.Uncached = true }

func newPod(name string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func keyOf(name string) string { return "/pods/ns/" + name }

func mustCreate(t testing.TB, store upstream.Interface, pod *example.Pod) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := store.Create(context.Background(), keyOf(pod.Name), pod, out, 0); err != nil {
		t.Fatalf("create %s: %v", pod.Name, err)
	}
	return out
}

// mustSet updates the pod with change, from whatever it is.
func mustSet(t testing.TB, store upstream.Interface, name string, change func(*example.Pod)) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := set(store, name, out, change); err != nil {
		t.Fatalf("update %s: %v", name, err)
	}
	return out
}

func set(store upstream.Interface, name string, out *example.Pod, change func(*example.Pod)) error {
	return store.GuaranteedUpdate(context.Background(), keyOf(name), out, false, nil,
		upstream.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			change(obj.(*example.Pod))
			return obj, nil
		}), nil)
}

func label(value string) func(*example.Pod) {
	return func(pod *example.Pod) { pod.Labels = map[string]string{"l": value} }
}

func mustDelete(t testing.TB, store upstream.Interface, name string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := remove(store, name, out, nil); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
	return out
}

func remove(store upstream.Interface, name string, out *example.Pod, preconditions *upstream.Preconditions) error {
	return store.Delete(context.Background(), keyOf(name), out, preconditions, upstream.ValidateAllObjectFunc, nil, upstream.DeleteOptions{})
}

func get(store upstream.Interface, name, resourceVersion string) (*example.Pod, error) {
	out := &example.Pod{}
	err := store.Get(context.Background(), keyOf(name), upstream.GetOptions{ResourceVersion: resourceVersion}, out)
	return out, err
}

// list lists all pods; opts need not say so.
func list(store upstream.Interface, opts upstream.ListOptions) (*example.PodList, error) {
	out := &example.PodList{}
	err := store.GetList(context.Background(), "/pods/", complete(opts), out)
	return out, err
}

// complete adds what every list and watch of a collection has.
func complete(opts upstream.ListOptions) upstream.ListOptions {
	opts.Recursive = true
	if opts.Predicate.Label == nil {
		opts.Predicate.Label = upstream.Everything.Label
	}
	if opts.Predicate.Field == nil {
		opts.Predicate.Field = upstream.Everything.Field
	}
	if opts.Predicate.GetAttrs == nil {
		opts.Predicate.GetAttrs = upstream.DefaultNamespaceScopedAttr
	}
	return opts
}

func mustList(t testing.TB, store upstream.Interface, opts upstream.ListOptions) *example.PodList {
	t.Helper()
	out, err := list(store, opts)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return out
}

// names writes items as text, each name with the label that says its state.
func names(items []example.Pod) string {
	text := ""
	for _, pod := range items {
		text += fmt.Sprintf("%s=%s ", pod.Name, pod.Labels["l"])
	}
	return text
}

// code is the HTTP status of an error, 200 for none, 0 for one that the API
// would have to guess.
func code(err error) int {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 200
	case errors.As(err, &status):
		return int(status.Status().Code)
	case upstream.IsNotFound(err):
		return 404
	case upstream.IsExist(err), upstream.IsInvalidObj(err):
		return 409
	}
	return 0
}

var errUnreadable = errors.New("unreadable")

// difference is empty if two pods are equal, and else both of them.
func difference(want, got *example.Pod) string {
	if apiequality.Semantic.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("got\n%+v\nwant\n%+v", got, want)
}

func tryStore(root, prefix string) error {
	_, err := storage.New(storage.Config{Root: root, ResourcePrefix: prefix})
	return err
}
