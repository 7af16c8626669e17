package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// TestVerbs takes an object of every kind through its life, by every way to
// talk, through every node. A second node watches it, a third one reads it.
func TestVerbs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	var all []*life
	for _, k := range kinds {
		for transport := range transports {
			for node := range c.nodes {
				all = append(all, newLife(c, k, transport, node))
			}
		}
	}
	ctx := t.Context()
	t.Run("verbs", func(t *testing.T) {
		for _, l := range all {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				if err := l.run(ctx); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	// Namespaces take upstream's five seconds to go, so the watches are read last.
	for _, l := range all {
		if t.Failed() {
			break
		}
		if err := l.checkEvents(ctx); err != nil {
			t.Errorf("watch of %s: %v", l.name, err)
		}
	}
	c.checkEqual()
}

// life is one object's. Its fields are what the verbs before have found out.
type life struct {
	kind      kind
	name      string // of the subtest
	namespace string
	objName   string
	labels    map[string]string
	writer    objects
	watcher   objects
	reader    objects
	admin     kubernetes.Interface

	object   runtime.Object // as last returned
	listRV   string
	versions []string // every version that a verb has returned
	events   watch.Interface
}

// verbs is the table's other side. They run in this order.
var verbs = []struct {
	name string
	run  func(l *life, ctx context.Context) error
}{
	{"create", (*life).create},
	{"get", (*life).get},
	{"list", (*life).list},
	{"watch", (*life).watch},
	{"update", (*life).update},
	{"patch", (*life).jsonPatch},
	{"patch", (*life).mergePatch},
	{"patch", (*life).strategicPatch},
	{"patch", (*life).applyPatch},
	{"delete", (*life).delete},
	{"deletecollection", (*life).deleteCollection},
}

func newLife(c *testCluster, k kind, transport string, node int) *life {
	id := strings.ReplaceAll(fmt.Sprintf("%s-%s-n%d", k, transport, node), ".", "-")
	l := &life{kind: k, name: id, namespace: "ns-" + id, objName: id, labels: map[string]string{"life": id}}
	for i, role := range []*objects{&l.writer, &l.watcher, &l.reader} {
		client, err := transports[transport](c.clientConfig((node+i)%len(c.nodes)), k, l.namespace)
		if err != nil {
			c.t.Fatal(err)
		}
		*role = client
	}
	l.admin = kubernetes.NewForConfigOrDie(c.clientConfig(node))
	return l
}

func (l *life) run(ctx context.Context) error {
	if !l.kind.clusterScoped {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}
		if _, err := l.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, verb := range verbs {
		if err := verb.run(l, ctx); err != nil {
			return fmt.Errorf("%s: %w", verb.name, err)
		}
	}
	return nil
}

// written takes what a write returned.
func (l *life) written(obj runtime.Object, err error) error {
	if err != nil {
		return err
	}
	if l.object != nil && version(obj) <= version(l.object) {
		return fmt.Errorf("version %d is not after %d", version(obj), version(l.object))
	}
	l.object = obj
	l.versions = append(l.versions, metaOf(obj).GetResourceVersion())
	return nil
}

func (l *life) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "life=" + l.labels["life"]}
}

func (l *life) create(ctx context.Context) error {
	if err := l.written(l.writer.create(ctx, l.kind.named(l.namespace, l.objName, l.labels))); err != nil {
		return err
	}
	m := metaOf(l.object)
	if m.GetUID() == "" || m.GetCreationTimestamp() == (metav1.Time{}) || m.GetName() != l.objName {
		return fmt.Errorf("incomplete metadata: %+v", m)
	}
	_, err := l.writer.create(ctx, l.kind.named(l.namespace, l.objName, l.labels))
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("created twice: %v", err)
	}
	return nil
}

// get reads on another node what has just been written.
func (l *life) get(ctx context.Context) error {
	obj, err := l.reader.get(ctx, l.objName)
	if err != nil {
		return err
	}
	if l.kind.Kind != "Namespace" && !reflect.DeepEqual(obj, l.object) {
		return fmt.Errorf("read %+v, written %+v", obj, l.object)
	}
	if _, err := l.reader.get(ctx, l.objName+"-not"); !apierrors.IsNotFound(err) {
		return fmt.Errorf("found what is not there: %v", err)
	}
	return nil
}

func (l *life) list(ctx context.Context) (err error) {
	items, rv, err := l.reader.list(ctx, l.options())
	if err != nil {
		return err
	}
	if len(items) != 1 || metaOf(items[0]).GetUID() != metaOf(l.object).GetUID() {
		return fmt.Errorf("listed %d objects: %+v", len(items), items)
	}
	if parse(rv) < version(l.object) {
		return fmt.Errorf("list at version %s lacks %d", rv, version(l.object))
	}
	l.listRV = rv
	return nil
}

func (l *life) watch(ctx context.Context) (err error) {
	opts := l.options()
	opts.ResourceVersion = l.listRV
	l.events, err = l.watcher.watch(ctx, opts)
	return err
}

func (l *life) update(ctx context.Context) error {
	stale := l.object.DeepCopyObject()
	changed := l.object.DeepCopyObject()
	metaOf(changed).SetAnnotations(map[string]string{"updated": "yes"})
	if err := l.written(l.writer.update(ctx, changed)); err != nil {
		return err
	}
	metaOf(stale).SetAnnotations(map[string]string{"updated": "too late"})
	if _, err := l.reader.update(ctx, stale); !apierrors.IsConflict(err) {
		return fmt.Errorf("update of a stale object: %v", err)
	}
	return l.expect("updated", "yes")
}

func (l *life) jsonPatch(ctx context.Context) error {
	return l.patched(ctx, types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations/json","value":"yes"}]`, "json")
}

func (l *life) mergePatch(ctx context.Context) error {
	return l.patched(ctx, types.MergePatchType, `{"metadata":{"annotations":{"merge":"yes"}}}`, "merge")
}

func (l *life) strategicPatch(ctx context.Context) error {
	return l.patched(ctx, types.StrategicMergePatchType, `{"metadata":{"annotations":{"strategic":"yes"}}}`, "strategic")
}

func (l *life) applyPatch(ctx context.Context) error {
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"annotations":{"apply":"yes"}}}`,
		l.kind.GroupVersion(), l.kind.Kind, l.objName)
	if err := l.patched(ctx, types.ApplyPatchType, body, "apply"); err != nil {
		return err
	}
	owned := func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "test" && entry.Operation == "Apply"
	}
	if !slices.ContainsFunc(metaOf(l.object).GetManagedFields(), owned) {
		return errors.New("the applied field has no owner")
	}
	return nil
}

func (l *life) patched(ctx context.Context, how types.PatchType, body, annotation string) error {
	if err := l.written(l.writer.patch(ctx, l.objName, how, []byte(body))); err != nil {
		return fmt.Errorf("%s: %w", how, err)
	}
	return errors.Join(l.expect("updated", "yes"), l.expect(annotation, "yes"))
}

// expect looks at an annotation of the object as it was last returned.
func (l *life) expect(annotation, value string) error {
	if got := metaOf(l.object).GetAnnotations()[annotation]; got != value {
		return fmt.Errorf("annotation %s is %q, not %q", annotation, got, value)
	}
	return nil
}

func (l *life) delete(ctx context.Context) error {
	if err := l.writer.delete(ctx, l.objName); err != nil {
		return err
	}
	if l.kind.Kind == "Namespace" { // it goes when it has been emptied
		return nil
	}
	if _, err := l.reader.get(ctx, l.objName); !apierrors.IsNotFound(err) {
		return fmt.Errorf("it is still there: %v", err)
	}
	if err := l.writer.delete(ctx, l.objName); !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleted twice: %v", err)
	}
	return nil
}

func (l *life) deleteCollection(ctx context.Context) error {
	if l.kind.noCollection {
		if err := l.writer.deleteCollection(ctx, l.options()); !apierrors.IsMethodNotSupported(err) {
			return fmt.Errorf("want 405, got %v", err)
		}
		return nil
	}
	for _, suffix := range []string{"-1", "-2"} {
		if err := l.written(l.writer.create(ctx, l.kind.named(l.namespace, l.objName+suffix, l.labels))); err != nil {
			return err
		}
	}
	if err := l.writer.deleteCollection(ctx, l.options()); err != nil {
		return err
	}
	items, _, err := l.reader.list(ctx, l.options())
	if err == nil && len(items) > 0 {
		err = fmt.Errorf("%d objects are left", len(items))
	}
	return err
}

// checkEvents reads the watch up to the last deletion: it has every version
// that a write returned, in order and once.
func (l *life) checkEvents(ctx context.Context) error {
	defer l.events.Stop()
	deletions := 3
	if l.kind.noCollection {
		deletions = 1
	}
	var seen []string
	for last := parse(l.listRV); deletions > 0; {
		event, err := nextEvent(ctx, l.events)
		if err != nil {
			return fmt.Errorf("%w; so far %v of %v", err, seen, l.versions)
		}
		if version(event.Object) <= last {
			return fmt.Errorf("%s at version %d comes after %d", event.Type, version(event.Object), last)
		}
		last = version(event.Object)
		seen = append(seen, metaOf(event.Object).GetResourceVersion())
		if event.Type == watch.Deleted {
			deletions--
		}
	}
	for _, rv := range l.versions[1:] {
		if !slices.Contains(seen, rv) {
			return fmt.Errorf("version %s is missing in %v", rv, seen)
		}
	}
	return nil
}

// nextEvent waits for the next event of a watch, which must be one of an object.
func nextEvent(ctx context.Context, w watch.Interface) (watch.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case event, ok := <-w.ResultChan():
		switch {
		case !ok:
			return event, errWatchEnded
		case event.Type == watch.Error:
			return event, apierrors.FromObject(event.Object)
		}
		return event, nil
	case <-ctx.Done():
		return watch.Event{}, errors.New("no event comes")
	}
}

var errWatchEnded = errors.New("the watch has ended")

func version(obj runtime.Object) uint64 { return parse(metaOf(obj).GetResourceVersion()) }

func parse(rv string) uint64 {
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// TestKindsAreComplete compares the tables above with what discovery says is
// served.
func TestKindsAreComplete(t *testing.T) {
	c := newCluster(t, 1, nil)
	lists, err := kubernetes.NewForConfigOrDie(c.clientConfig(0)).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") && r.Kind != "Binding" {
				slices.Sort(r.Verbs)
				served[list.GroupVersion+" "+r.Name] = fmt.Sprint(r.Kind, " ", r.Namespaced, " ", r.Verbs)
			}
		}
	}
	tested := map[string]string{}
	for _, k := range kinds {
		var names metav1.Verbs
		for _, v := range verbs {
			if !slices.Contains(names, v.name) && !(v.name == "deletecollection" && k.noCollection) {
				names = append(names, v.name)
			}
		}
		slices.Sort(names)
		tested[k.GroupVersion().String()+" "+k.resource] = fmt.Sprint(k.Kind, " ", !k.clusterScoped, " ", names)
	}
	if !reflect.DeepEqual(served, tested) {
		t.Errorf("served: %v\ntested: %v", served, tested)
	}
}
