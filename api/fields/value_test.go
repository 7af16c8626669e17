package fields

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/randfill"

	"kontiki/api/registry"
)

// plainKinds are those that an objectValue may be of.
var plainKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("Node"),
	corev1.SchemeGroupVersion.WithKind("Event"), eventsv1.SchemeGroupVersion.WithKind("Event"),
	coordinationv1.SchemeGroupVersion.WithKind("Lease"),
}

// managers are upstream's field manager with upstream's way to look at objects, and with ours.
func managers(t testing.TB, kind schema.GroupVersionKind) (theirs, ours *managedfields.FieldManager) {
	t.Helper()
	scheme, types := registry.Scheme(), registry.TypeConverter()
	for manager, converter := range map[**managedfields.FieldManager]managedfields.TypeConverter{
		&theirs: types,
		&ours:   NewTypes(types, kind.Group, kind, scheme),
	} {
		var err error
		*manager, err = managedfields.NewDefaultFieldManager(converter, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, kind, kind.GroupVersion(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return theirs, ours
}

// randomly fills objects.
func randomly(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(port *intstr.IntOrString, c randfill.Continue) { *port = intstr.FromInt32(c.Int31n(1 << 15)) },
		func(entries *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *entries = nil },
	)
}

// changed is a copy of obj in which some fields, of its own and one level below, are filled anew.
func changed(obj runtime.Object, fill *randfill.Filler, random *rand.Rand) runtime.Object {
	obj = obj.DeepCopyObject()
	v := reflect.ValueOf(obj).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		if v.Type().Field(i).Name == "TypeMeta" || random.IntN(2) == 0 {
			continue
		}
		if field.Kind() == reflect.Struct && field.NumField() > 0 && random.IntN(3) > 0 {
			field = field.Field(random.IntN(field.NumField()))
		}
		if field.CanSet() {
			fill.Fill(field.Addr().Interface())
		}
	}
	return obj
}

// TestSameManagedFields: what a client owns does not depend on how objects are looked at.
func TestSameManagedFields(t *testing.T) {
	seed := rand.Int64()
	others := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	}
	for _, kind := range append(others, plainKinds...) {
		theirs, ours := managers(t, kind)
		for i := range int64(60) {
			fill, random := randomly(seed+i), rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			empty, err := registry.Scheme().New(kind)
			if err != nil {
				t.Fatal(err)
			}
			first := empty.DeepCopyObject()
			fill.Fill(first)
			second := changed(first, fill, random)
			first.GetObjectKind().SetGroupVersionKind(kind)
			second.GetObjectKind().SetGroupVersionKind(kind)
			want, got := story(theirs, empty, first, second), story(ours, empty, first, second)
			for at := range min(len(want), len(got)) {
				if want[at] != got[at] {
					t.Fatalf("%s, seed %d: managed fields are ...%.200s with upstream's types, and ...%.200s with ours", kind, seed+i, want[max(at-100, 0):], got[max(at-100, 0):])
				}
			}
			if len(want) != len(got) {
				t.Fatalf("%s, seed %d: managed fields have %d bytes, with upstream's types %d", kind, seed+i, len(got), len(want))
			}
		}
	}
}

// story has an object created, updated and applied to, and tells what is owned then.
func story(manager *managedfields.FieldManager, empty, first, second runtime.Object) string {
	created := manager.UpdateNoErrors(empty.DeepCopyObject(), first.DeepCopyObject(), "creator")
	text := owned(created)
	updated := manager.UpdateNoErrors(created, second.DeepCopyObject(), "updater")
	text += owned(updated)
	m, _ := meta.Accessor(updated)
	patch := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": m.GetName(), "namespace": m.GetNamespace(), "labels": map[string]any{"a": "b"}}}}
	patch.SetGroupVersionKind(first.GetObjectKind().GroupVersionKind())
	applied, err := manager.Apply(updated, patch, "applier", true)
	if err != nil {
		return text + err.Error()
	}
	text += owned(applied)
	m, _ = meta.Accessor(applied)
	m.SetManagedFields(nil) // they have times
	content, _ := json.Marshal(applied)
	return text + string(content)
}

// TestClaimed: who says that he owns managedFields does not for long, as with upstream's types.
func TestClaimed(t *testing.T) {
	for _, name := range []string{"managedFields", `managed\u0046ields`} {
		claim := metav1.ManagedFieldsEntry{
			Manager: "claimer", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:` + name + `":{}, "f:labels":{"f:mine":{}}}}`),
		}
		theirs, ours := managers(t, plainKinds[0])
		tell := func(manager *managedfields.FieldManager) string {
			pod := &corev1.Pod{}
			pod.SetGroupVersionKind(plainKinds[0])
			pod.Labels = map[string]string{"mine": "1"}
			live := manager.UpdateNoErrors(&corev1.Pod{}, pod, "creator").(*corev1.Pod)
			live.ManagedFields = append(live.ManagedFields, claim)
			next := live.DeepCopy()
			next.Labels["new"] = "1"
			return owned(manager.UpdateNoErrors(live, next, "updater"))
		}
		if got, want := tell(ours), tell(theirs); got != want || strings.Contains(want, "managed") {
			t.Errorf("%s is owned by\n%s\nwith upstream's types by\n%s", name, got, want)
		}
	}
}

func owned(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err.Error()
	}
	entries := m.GetManagedFields()
	text := ""
	for i := range entries {
		entries[i].Time = nil
		text += fmt.Sprintf("%s %s %s\n", entries[i].Manager, entries[i].Operation, entries[i].FieldsV1.GetRawString())
	}
	return text
}

// BenchmarkManagedFields is a create and an update of one field of a pod.
func BenchmarkManagedFields(b *testing.B) {
	kind := plainKinds[0]
	theirs, ours := managers(b, kind)
	pod := &corev1.Pod{}
	randomly(1).NilChance(0.7).Fill(pod)
	pod.SetGroupVersionKind(kind)
	for name, manager := range map[string]*managedfields.FieldManager{"upstream": theirs, "kontiki": ours} {
		b.Run("create/types="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				manager.UpdateNoErrors(&corev1.Pod{}, pod.DeepCopy(), "me")
			}
		})
		live := manager.UpdateNoErrors(&corev1.Pod{}, pod.DeepCopy(), "creator").(*corev1.Pod)
		next := live.DeepCopy()
		next.Status.Phase = "Running"
		b.Run("update/types="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				manager.UpdateNoErrors(live, next.DeepCopy(), "kubelet")
			}
		})
	}
}
