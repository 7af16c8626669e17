package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informerMakers are the ways to get an informer. The namespace is empty for
// what has none.
var informerMakers = map[string]func(config *rest.Config, k kind, namespace string) (informers.GenericInformer, error){
	"typed": func(config *rest.Config, k kind, namespace string) (informers.GenericInformer, error) {
		config = rest.CopyConfig(config)
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)).ForResource(k.gvr())
	},
	"dynamic": func(config *rest.Config, k kind, namespace string) (informers.GenericInformer, error) {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil).ForResource(k.gvr()), nil
	},
	"metadata": func(config *rest.Config, k kind, namespace string) (informers.GenericInformer, error) {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil).ForResource(k.gvr()), nil
	},
}

// TestInformers keeps informers of every sort and kind on all nodes while the
// leader is killed and comes back. They start with the WatchList protocol, those
// of other nodes do not notice, and all end with what is stored.
func TestInformers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader, writer := c.leader(), c.followers()[0]
	admin := kubernetes.NewForConfigOrDie(c.clientConfig(writer))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "informed"}}
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	churn := &churn{t: t, config: c.clientConfig(writer), namespace: namespace.Name}
	churn.round()
	all := startInformers(c, namespace.Name)
	all.check("at the start", c.up(), churn.stored())
	churn.round()
	all.check("after changes", c.up(), churn.stored())
	all.expectRequests("before the crash", c.up(), false)

	c.crash(leader)
	churn.round()
	all.check("without the leader", c.up(), churn.stored())
	all.expectRequests("without the leader", c.up(), false)

	survivors := c.up()
	c.start(leader)
	churn.round()
	all.check("with the old leader back", c.up(), churn.stored())
	churn.round()
	all.check("at the end", c.up(), churn.stored())
	all.expectRequests("at the end", survivors, false)
	all.expectRequests("at the end", []int{leader}, true)
	c.checkEqual()
}

// churn makes, changes and deletes objects of every kind, through one node.
type churn struct {
	t         testing.TB
	config    *rest.Config
	namespace string
	rounds    int
}

// informed are the kinds to watch. Namespaces take long to go.
func informed() (some []kind) {
	for _, k := range kinds {
		if k.resource != "namespaces" {
			some = append(some, k)
		}
	}
	return some
}

// round makes two objects of each kind, changes one of the last round and
// deletes the other. The cluster may be without a leader for a moment.
func (c *churn) round() {
	c.t.Helper()
	c.rounds++
	for _, k := range informed() {
		client, err := newDynamic(c.config, k, c.namespace)
		if err != nil {
			c.t.Fatal(err)
		}
		name := func(what string, round int) string { return fmt.Sprintf("%s-%s-%d", what, k.version(), round) }
		until(c.t, func() error {
			for _, what := range []string{"kept", "gone"} {
				_, err := client.create(c.t.Context(), k.named(c.namespace, name(what, c.rounds), nil))
				if err != nil && !apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("create a %s: %w", k, err)
				}
			}
			if c.rounds == 1 {
				return nil
			}
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"round":"%d"}}}`, c.rounds)
			if _, err := client.patch(c.t.Context(), name("kept", c.rounds-1), types.MergePatchType, body); err != nil {
				return fmt.Errorf("patch a %s: %w", k, err)
			}
			if err := client.delete(c.t.Context(), name("gone", c.rounds-1)); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete a %s: %w", k, err)
			}
			return nil
		})
	}
}

// version tells the two kinds of events apart, in an object's name.
func (k kind) version() string {
	if k.Group == "" {
		return "core"
	}
	return "group"
}

// stored returns the version of every object of every kind.
func (c *churn) stored() map[string]versions {
	c.t.Helper()
	all := map[string]versions{}
	for _, k := range informed() {
		client, err := newDynamic(c.config, k, c.namespace)
		if err != nil {
			c.t.Fatal(err)
		}
		until(c.t, func() error {
			items, _, err := client.list(c.t.Context(), metav1.ListOptions{})
			all[k.String()] = versions{}
			for _, item := range items {
				all[k.String()][metaOf(item).GetName()] = version(item)
			}
			return err
		})
	}
	return all
}

// versions are the resource versions of objects by their names.
type versions map[string]uint64

// testInformers are the informers of all nodes.
type testInformers struct {
	t     testing.TB
	nodes [][]*observed
	asked []*listCounter
}

func startInformers(c *testCluster, namespace string) *testInformers {
	c.t.Helper()
	all := &testInformers{t: c.t}
	var running sync.WaitGroup
	for i := range c.nodes {
		counter := &listCounter{}
		config := c.clientConfig(i)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTransport{next, counter} })
		var here []*observed
		for _, k := range informed() {
			for how, informerOf := range informerMakers {
				in := namespace
				if k.clusterScoped {
					in = ""
				}
				informer, err := informerOf(config, k, in)
				if err != nil {
					c.t.Fatal(err)
				}
				o := &observed{what: fmt.Sprintf("node %d, %s informer of %s", i, how, k), kind: k.String(), informer: informer.Informer(), known: versions{}}
				if _, err := o.informer.AddEventHandler(o); err != nil {
					c.t.Fatal(err)
				}
				running.Go(func() { o.informer.RunWithContext(c.t.Context()) })
				here = append(here, o)
			}
		}
		all.nodes, all.asked = append(all.nodes, here), append(all.asked, counter)
	}
	c.t.Cleanup(running.Wait) // the test's context has ended before
	return all
}

// check waits until the informers of some nodes have what is stored.
func (all *testInformers) check(when string, nodes []int, want map[string]versions) {
	all.t.Helper()
	for _, i := range nodes {
		for _, o := range all.nodes[i] {
			until(all.t, func() error {
				err := o.compare(want[o.kind])
				if o.fault() != nil {
					all.t.Fatalf("%s: %s: %v", when, o.what, o.fault())
				}
				if err != nil {
					err = fmt.Errorf("%s: %s: %w", when, o.what, err)
				}
				return err
			})
		}
	}
}

// expectRequests looks at how informers got their state: with one WatchList
// request each, or more where the node was away, and never with a list.
func (all *testInformers) expectRequests(when string, nodes []int, more bool) {
	all.t.Helper()
	for _, i := range nodes {
		want := len(all.nodes[i])
		lists, initial := all.asked[i].counts()
		if lists != 0 || initial < want || initial > want && !more {
			all.t.Errorf("%s, node %d: %d informers made %d lists and %d watches with sendInitialEvents", when, i, want, lists, initial)
		}
	}
}

// observed is an informer and what it has told its handler.
type observed struct {
	what, kind string
	informer   cache.SharedIndexInformer

	mu     sync.Mutex
	known  versions // guarded by mu
	faults error    // guarded by mu
}

var _ cache.ResourceEventHandler = (*observed)(nil)

// OnAdd implements cache.ResourceEventHandler.
func (o *observed) OnAdd(obj any, _ bool) { o.note("added", obj, false) }

// OnUpdate implements cache.ResourceEventHandler.
func (o *observed) OnUpdate(_, obj any) { o.note("updated", obj, true) }

// OnDelete implements cache.ResourceEventHandler.
func (o *observed) OnDelete(obj any) {
	if unseen, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unseen.Obj
	}
	o.note("deleted", obj, true)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, metaOf(obj.(runtime.Object)).GetName())
}

// note takes an event and keeps what is wrong with it: an object appears once,
// and its versions do not go back.
func (o *observed) note(event string, obj any, exists bool) {
	name, now := metaOf(obj.(runtime.Object)).GetName(), version(obj.(runtime.Object))
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, ok := o.known[name]; ok != exists || now < before {
		o.faults = errors.Join(o.faults, fmt.Errorf("%s was %s at version %d, known was version %d, %t", name, event, now, before, ok))
	}
	o.known[name] = now
}

func (o *observed) fault() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.faults
}

func (o *observed) compare(want versions) error {
	if !o.informer.HasSynced() {
		return errors.New("it has not synced")
	}
	cached := versions{}
	for _, obj := range o.informer.GetStore().List() {
		cached[metaOf(obj.(runtime.Object)).GetName()] = version(obj.(runtime.Object))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !maps.Equal(cached, want) || !maps.Equal(o.known, want) {
		return fmt.Errorf("it has %v, has told %v, stored is %v", cached, o.known, want)
	}
	return nil
}

// listCounter counts the requests that ask for a whole collection.
type listCounter struct {
	mu             sync.Mutex
	lists, initial int // guarded by mu
}

type countingTransport struct {
	next http.RoundTripper
	*listCounter
}

// RoundTrip implements http.RoundTripper.
func (l countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch query := r.URL.Query(); {
	case query.Get("watch") != "true":
		l.lists++
	case query.Get("sendInitialEvents") == "true" && err == nil && answer.StatusCode == http.StatusOK:
		l.initial++
	}
	return answer, err
}

func (l *listCounter) counts() (lists, initial int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists, l.initial
}
