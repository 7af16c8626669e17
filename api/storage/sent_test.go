package storage_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/apiserver/pkg/storage"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"sigs.k8s.io/randfill"

	"kontiki/api/registry"
	"kontiki/api/storage"
)

// servedKinds are stored, each as the version that comes first.
var servedKinds = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "pods"}: "Pod", {Version: "v1", Resource: "services"}: "Service",
	{Version: "v1", Resource: "nodes"}: "Node", {Version: "v1", Resource: "namespaces"}: "Namespace",
	{Version: "v1", Resource: "endpoints"}: "Endpoints", {Version: "v1", Resource: "events"}: "Event",
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}: "Lease",
}

// served is a kind as the server stores and sends it.
type served struct {
	kind  schema.GroupVersionKind
	store upstream.Interface
	key   string
}

func serve(t *testing.T, backend storage.Backend, resource schema.GroupVersionResource, kind string) served {
	t.Helper()
	s := served{kind: resource.GroupVersion().WithKind(kind), key: "/" + resource.Resource + "/ns/a"}
	options, err := registry.Options{Backend: backend}.GetRESTOptions(resource.GroupResource(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var triggers upstream.IndexerFuncs
	if kind == "Pod" {
		triggers = upstream.IndexerFuncs{"spec.nodeName": pod.NodeNameTriggerFunc}
	}
	s.store, _, err = options.Decorator(options.StorageConfig, options.ResourcePrefix, nil, s.new, func() runtime.Object {
		return internal(t, s.kind.Group, kind+"List")
	}, nil, triggers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func internal(t *testing.T, group, kind string) runtime.Object {
	t.Helper()
	obj, err := registry.Scheme().New(schema.GroupVersionKind{Group: group, Version: runtime.APIVersionInternal, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func (s served) new() runtime.Object {
	obj, err := registry.Scheme().New(schema.GroupVersionKind{Group: s.kind.Group, Version: runtime.APIVersionInternal, Kind: s.kind.Kind})
	if err != nil {
		panic(err) // serve has tried it
	}
	return obj
}

// any is an object such as registries store: a client's, with defaults.
func (s served) any(t *testing.T, seed int64) runtime.Object {
	t.Helper()
	obj, err := registry.Scheme().New(s.kind)
	if err != nil {
		t.Fatal(err)
	}
	randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 3).MaxDepth(12).Funcs(
		func(port *intstr.IntOrString, c randfill.Continue) { *port = intstr.FromInt32(c.Int31n(1 << 15)) },
		func(fields *metav1.FieldsV1, c randfill.Continue) { *fields = *metav1.NewFieldsV1(`{"f:spec":{}}`) },
		func(ref *corev1.ResourceList, c randfill.Continue) { *ref = nil },
	).Fill(obj)
	registry.Scheme().Default(obj)
	into := s.new()
	if err := registry.Scheme().Convert(obj, into, nil); err != nil {
		t.Fatal(err)
	}
	accessor, err := meta.Accessor(into)
	if err != nil {
		t.Fatal(err)
	}
	accessor.SetResourceVersion("") // a create with a number there is refused
	return into
}

// as encodes what a handler would send.
func (s served) as(t *testing.T, media string, obj runtime.Object) string {
	t.Helper()
	codecs := registry.NewSerializer()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	var sent bytes.Buffer
	if err := codecs.EncoderForVersion(info.Serializer, s.kind.GroupVersion()).Encode(obj, &sent); err != nil {
		t.Fatal(err)
	}
	return sent.String()
}

// TestWhatIsStoredIsWhatIsSent: every kind in every verb, as stored bytes and as upstream makes
// it, decoded and encoded.
func TestWhatIsStoredIsWhatIsSent(t *testing.T) {
	t.Parallel()
	begin := rand.Int64()
	for resource, kind := range servedKinds {
		t.Run(kind, func(t *testing.T) {
			for seed := begin; seed < begin+30; seed++ {
				node, _ := newReplicas(0)
				s := serve(t, node.backend(), resource, kind)
				compareVerbs(t, s, seed)
			}
		})
	}
}

func compareVerbs(t *testing.T, s served, seed int64) {
	t.Helper()
	background, everything := context.Background(), upstream.ListOptions{Predicate: upstream.Everything, Recursive: true}
	same := func(verb string, shared, plain runtime.Object) {
		t.Helper()
		if shared == plain {
			t.Fatalf("seed %d, %s: nothing is shared", seed, verb)
		}
		for _, media := range []string{"application/vnd.kubernetes.protobuf", "application/json", "application/yaml"} {
			if got, want := s.as(t, media, shared), s.as(t, media, plain); got != want {
				t.Fatalf("seed %d, %s as %s:\n%q, upstream's way\n%q", seed, verb, media, got, want)
			}
		}
	}
	sameMetadata := func(shared, plain runtime.Object) {
		t.Helper()
		got, err := meta.Accessor(shared)
		want, wantErr := meta.Accessor(plain)
		if err != nil || wantErr != nil || !equality.Semantic.DeepEqual(meta.AsPartialObjectMetadata(got), meta.AsPartialObjectMetadata(want)) {
			t.Fatalf("seed %d: metadata is %v (%v), want %v (%v)", seed, got, err, want, wantErr)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	read := func() runtime.Object {
		plain := s.new()
		ok(s.store.Get(background, s.key, upstream.GetOptions{}, plain))
		return plain
	}

	ctx, answer := storage.WithAnswer(background)
	out := s.new()
	ok(s.store.Create(ctx, s.key, s.any(t, seed), out, 0))
	same("create", answer.Of(out), read())

	ctx, answer = storage.WithAnswerOnly(background)
	out = s.new()
	ok(s.store.Get(ctx, s.key, upstream.GetOptions{}, out))
	same("get", answer.Of(out), read())

	ctx, answer = storage.WithAnswer(background)
	out = s.new()
	ok(s.store.GuaranteedUpdate(ctx, s.key, out, false, nil, func(runtime.Object, upstream.ResponseMeta) (runtime.Object, *uint64, error) {
		return s.any(t, seed+1_000_000), nil, nil
	}, nil))
	last := read()
	same("update", answer.Of(out), last)

	for name, opts := range map[string]upstream.ListOptions{"list": everything, "empty list": {Predicate: upstream.Everything, Recursive: true}} {
		key := s.key[:len(s.key)-1]
		if name == "empty list" {
			key = key[:len(key)-1] + "-none/"
		}
		ctx, answer = storage.WithAnswer(background)
		list, plain := internal(t, s.kind.Group, s.kind.Kind+"List"), internal(t, s.kind.Group, s.kind.Kind+"List")
		ok(s.store.GetList(ctx, key, opts, list))
		ok(s.store.GetList(background, key, opts, plain))
		same(name, answer.Of(list), plain)
	}

	ctx, answer = storage.WithAnswer(background)
	out = s.new()
	nobody := func(context.Context, runtime.Object) error { return nil }
	ok(s.store.Delete(ctx, s.key, out, nil, nobody, nil, upstream.DeleteOptions{}))
	ok(upstream.APIObjectVersioner{}.UpdateObject(last, 3))
	same("delete", answer.Of(out), last)

	watched, err := s.store.Watch(background, s.key[:len(s.key)-1], upstream.ListOptions{Predicate: upstream.Everything, Recursive: true, ResourceVersion: "1"})
	ok(err)
	defer watched.Stop()
	<-watched.ResultChan() // the update
	event := <-watched.ResultChan()
	if event.Type != apiwatch.Deleted {
		t.Fatalf("seed %d: %v, want the deletion", seed, event.Type)
	}
	sameMetadata(event.Object, last)
	same("watch", event.Object, last)
}

// TestOtherReleasesAreDecoded: what was stored by another release, or by a Kontiki that made no
// marks, is sent as this one understands it, with its defaults.
func TestOtherReleasesAreDecoded(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"1.0.0", ""} {
		node, _ := newReplicas(0)
		resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		s := serve(t, node.backend(), resource, "Pod")
		options, err := registry.Options{Backend: node.backend()}.GetRESTOptions(resource.GroupResource(), nil)
		if err != nil {
			t.Fatal(err)
		}
		older, err := storage.New(storage.Config{
			Backend: node.backend(), GroupResource: resource.GroupResource(), NewFunc: s.new,
			Root: "/core", ResourcePrefix: "/pods", Codec: options.StorageConfig.Codec, Release: release,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := older.Create(context.Background(), s.key, s.new(), nil, 0); err != nil {
			t.Fatal(err)
		}
		ctx, answer := storage.WithAnswerOnly(context.Background())
		out := s.new()
		if err := s.store.Get(ctx, s.key, upstream.GetOptions{}, out); err != nil {
			t.Fatal(err)
		}
		if got := s.as(t, "application/vnd.kubernetes.protobuf", answer.Of(out)); !strings.Contains(got, string(corev1.RestartPolicyAlways)) {
			t.Errorf("release %q: a pod is sent without the defaults of this release: %q", release, got)
		}
	}
}
