package routes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kubernetes/pkg/apis/core"

	"kontiki/api/registry"
)

// createdPod is a pod as it is stored, with all that makes it large.
func createdPod(t *testing.T, target *target) runtime.Object {
	t.Helper()
	versioned := &corev1.Pod{}
	if err := json.Unmarshal([]byte(`{
		"metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "0"}, "finalizers": ["x/y"]},
		"spec": {"nodeName": "n", "nodeSelector": {"zone": "z"}, "tolerations": [{"key": "k", "operator": "Exists"}],
			"containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "v"}], "ports": [{"containerPort": 80}]}],
			"volumes": [{"name": "v", "emptyDir": {}}]},
		"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`), versioned); err != nil {
		t.Fatal(err)
	}
	scheme := registry.Scheme()
	scheme.Default(versioned)
	pod := &core.Pod{}
	if err := scheme.Convert(versioned, pod, nil); err != nil {
		t.Fatal(err)
	}
	made, err := target.scope.FieldManager.Update(&core.Pod{}, pod, "creator")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// randomApply is what a manager wants of the pod's metadata, and now and then of its spec or status.
func randomApply(random *rand.Rand) map[string]any {
	metadata, body := map[string]any{"name": "p"}, map[string]any{"apiVersion": "v1", "kind": "Pod"}
	body["metadata"] = metadata
	some := func() map[string]any {
		all := map[string]any{}
		for _, key := range "abc" {
			if random.IntN(2) == 0 {
				all[string(key)] = fmt.Sprint(random.IntN(3))
			}
		}
		return all
	}
	for _, field := range []string{"labels", "annotations"} {
		if random.IntN(3) > 0 {
			metadata[field] = some()
		}
	}
	if random.IntN(4) == 0 {
		metadata["finalizers"] = []any{fmt.Sprint("x/", random.IntN(3))}
	}
	if random.IntN(12) == 0 {
		body["spec"] = map[string]any{"nodeSelector": some()}
	}
	if random.IntN(12) == 0 {
		body["status"] = map[string]any{"message": fmt.Sprint(random.IntN(3))}
	}
	return body
}

// TestSameApplies: whatever managers apply one after the other, to see only what is named comes to the
// same as to see all with upstream's types, with the same owners, the same conflicts and the same words.
func TestSameApplies(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) { // owners have times
		target := podTarget(t, "")
		c := &applies{T: t, random: rand.New(rand.NewPCG(seed, 0)), target: target, pod: createdPod(t, target),
			upstream: podManager(t, registry.TypeConverter(), "")}
		for i := range 400 {
			c.what = fmt.Sprintf("seed %d, apply %d", seed, i)
			c.one()
			time.Sleep(time.Duration(c.random.IntN(2)) * time.Second) // of the bubble's clock: owners are ordered by time
		}
		if c.hid < 100 || c.refused < 10 {
			t.Errorf("seed %d: %d parts were not shown and %d applies refused: too little was tried", seed, c.hid, c.refused)
		}
	})
}

// applies are done twice, with all that there is and without what they do not name.
type applies struct {
	*testing.T
	random       *rand.Rand
	target       *target
	upstream     *managedfields.FieldManager
	pod          runtime.Object
	what         string
	hid, refused int
}

func (c *applies) one() {
	body, manager, force := randomApply(c.random), fmt.Sprint("m", c.random.IntN(3)), c.random.IntN(2) == 0
	text, err := json.Marshal(body)
	if err != nil {
		c.Fatal(err)
	}
	c.what += fmt.Sprintf(" of %s as %s", text, manager)
	apply := func(by *managedfields.FieldManager, to runtime.Object) (runtime.Object, error) {
		return by.Apply(to, (&unstructured.Unstructured{Object: body}).DeepCopy(), manager, force)
	}
	want, wantErr := apply(c.upstream, c.pod.DeepCopyObject())

	u := patchWith(c.T, c.target, types.ApplyYAMLPatchType, string(text))
	u.manager = manager
	before := c.pod.DeepCopyObject()
	got, gotErr := apply(c.target.scope.FieldManager, u.begin(c.pod))
	c.hid += len(u.hidden)
	if gotErr == nil && u.old != nil {
		gotErr = u.end(got, manager)
	}
	switch {
	case fmt.Sprint(gotErr) != fmt.Sprint(wantErr):
		c.Fatalf("%s: %v, want %v", c.what, gotErr, wantErr)
	case !equality.Semantic.DeepEqual(c.pod, before):
		c.Fatalf("%s changed what is stored", c.what)
	case wantErr != nil:
		c.refused++
		return
	}
	if got, want := plain(c.T, got), plain(c.T, want); got != want {
		c.Fatalf("%s:\n%s\nwant\n%s", c.what, got, want)
	}
	c.pod = got
}

// plain is an object as clients get it.
func plain(t *testing.T, obj runtime.Object) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := registry.Scheme().Convert(obj.DeepCopyObject(), pod, nil); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhatAppliesAreShown: what an apply names, or may name, or takes back, is shown.
func TestWhatAppliesAreShown(t *testing.T) {
	const metadata = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"1"}}`
	applied := func(manager, owned, version string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(owned)}
	}
	for _, c := range []struct {
		body  string
		entry metav1.ManagedFieldsEntry
		want  string
	}{
		{`{` + metadata + `}`, applied("m", `{"f:metadata":{"f:labels":{"f:b":{}}}}`, "v1"), "[Spec Status]"},
		{`{` + metadata + `,"spec":{"nodeName":"n"}}`, applied("m", `{}`, "v1"), "[Status]"},
		{`{` + metadata + `,"status":{}}`, applied("m", `{}`, "v1"), "[Spec]"},
		{`{` + metadata + `,"sp\u0065c":{}}`, applied("m", `{}`, "v1"), "[]"},
		{`{` + metadata + `,!!binary c3BlYw==: {}}`, applied("m", `{}`, "v1"), "[]"},
		{`{` + metadata + `}`, applied("m", `{"f:spec":{"f:nodeName":{}}}`, "v1"), "[Status]"},
		{`{` + metadata + `}`, applied("other", `{"f:spec":{"f:nodeName":{}}}`, "v1"), "[Spec Status]"},
		{`{` + metadata + `}`, applied("other", `{"f:metadata":{}}`, "v2"), "[]"},
	} {
		old := ownedPod()
		old.ManagedFields = append(old.ManagedFields, c.entry)
		u := patchWith(t, podTarget(t, ""), types.ApplyYAMLPatchType, c.body)
		u.manager = "m"
		shown := u.begin(old).(*core.Pod)
		if fmt.Sprint(u.hidden) != c.want || len(shown.ManagedFields) != 2 || (c.want == "[]") != (shown == old) {
			t.Errorf("%s after %v: %v is not shown, want %s", c.body, c.entry, u.hidden, c.want)
		}
	}
	u := patchWith(t, podTarget(t, "status"), types.ApplyYAMLPatchType, `{`+metadata+`}`)
	if old := ownedPod(); u.begin(old) != runtime.Object(old) {
		t.Error("an apply to a subresource does not see all")
	}
}
