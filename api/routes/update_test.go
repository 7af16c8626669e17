package routes

import (
	"io"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/kubernetes/pkg/apis/core"

	"kontiki/api/fields"
	"kontiki/api/registry"
)

func podTarget(t *testing.T, subresource string) *target {
	t.Helper()
	kind, scheme := corev1.SchemeGroupVersion.WithKind("Pod"), registry.Scheme()
	known := fields.NewTypes(registry.TypeConverter(), "", kind, scheme)
	manager := podManager(t, known, subresource)
	return &target{
		subresource: subresource, owners: fields.NewOwners(kind, subresource, scheme, known, manager),
		scope: &handlers.RequestScope{Kind: kind, FieldManager: manager},
	}
}

func podManager(t *testing.T, known managedfields.TypeConverter, subresource string) *managedfields.FieldManager {
	t.Helper()
	kind, scheme := corev1.SchemeGroupVersion.WithKind("Pod"), registry.Scheme()
	manager, err := managedfields.NewDefaultFieldManager(known, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, kind, core.SchemeGroupVersion, subresource, nil)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

func ownedPod() *core.Pod {
	pod := &core.Pod{}
	pod.UID, pod.Spec.NodeName = "uid", "node"
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "creator", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`),
	}}
	return pod
}

func patchWith(t *testing.T, target *target, kind types.PatchType, body string) *updates {
	t.Helper()
	u := &updates{target: target, patch: kind, body: &seen{ReadCloser: io.NopCloser(strings.NewReader(body))}}
	if _, err := io.ReadAll(u.body); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestWhatUpdatesAreShown: upstream's handler does not see managedFields, unless the request may be
// about them.
func TestWhatUpdatesAreShown(t *testing.T) {
	target := podTarget(t, "")
	for _, c := range []struct {
		kind  types.PatchType
		body  string
		whole bool
	}{
		{types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, false},
		{types.StrategicMergePatchType, `{"spec":{"nodeName":"other"}}`, false},
		{types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`, true},
		{types.MergePatchType, `{"metadata":{"managed\u0046ields":[{}]}}`, true},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata","value":{}}]`, true},
	} {
		old := ownedPod()
		shown := patchWith(t, target, c.kind, c.body).begin(old).(*core.Pod)
		if whole := shown.ManagedFields != nil; whole != c.whole || len(old.ManagedFields) != 1 || shown.Spec.NodeName != "node" {
			t.Errorf("%s %s: %v", c.kind, c.body, shown)
		}
	}
	unowned := ownedPod()
	unowned.ManagedFields = nil
	if patchWith(t, target, types.MergePatchType, "{}").begin(unowned) != runtime.Object(unowned) {
		t.Error("an object that nobody owns is not what is shown")
	}
}

// TestUpdatesAreUndone: a handler that fails does it again with all before it, as it tells of it.
func TestUpdatesAreUndone(t *testing.T) {
	fresh := ownedPod()
	u := &updates{target: podTarget(t, ""), fresh: fresh}
	if u.begin(ownedPod()); fresh.ManagedFields != nil {
		t.Fatal("the field manager sees what a PUT brings")
	}
	if !u.undo() || len(fresh.ManagedFields) != 1 {
		t.Error("what a PUT brings is gone")
	}
	if u.begin(ownedPod()); u.end(ownedPod(), "updater") != nil || u.undo() {
		t.Error("undone after all was done")
	}
}

// TestStatusPatchesLeaveTheSpec: it is not shown, and there afterwards.
func TestStatusPatchesLeaveTheSpec(t *testing.T) {
	old := ownedPod()
	u := patchWith(t, podTarget(t, "status"), types.StrategicMergePatchType, `{"status":{"message":"m"}}`)
	shown := u.begin(old).(*core.Pod)
	if !reflect.DeepEqual(shown.Spec, core.PodSpec{}) {
		t.Fatal("the spec is shown")
	}
	made := shown.DeepCopy()
	made.Status.Message = "m"
	if err := u.end(made, "kubelet"); err != nil {
		t.Fatal(err)
	}
	if made.Spec.NodeName != "node" || old.Spec.NodeName != "node" {
		t.Error("the spec is gone")
	}
	if len(made.ManagedFields) != 2 || !strings.Contains(made.ManagedFields[1].FieldsV1.GetRawString(), "f:message") && !strings.Contains(made.ManagedFields[0].FieldsV1.GetRawString(), "f:message") {
		t.Errorf("the message is nobody's: %v", made.ManagedFields)
	}
	named := patchWith(t, podTarget(t, "status"), types.StrategicMergePatchType, `{"spec":{"nodeName":1},"status":{}}`)
	if shown := named.begin(old).(*core.Pod); shown.Spec.NodeName != "node" {
		t.Error("a spec that is named is not shown")
	}
}
