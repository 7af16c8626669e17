package api

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	leases    = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	pods      = "/api/v1/namespaces/default/pods"
	jsonType  = "application/json"
	applyType = "application/apply-patch+yaml"
	smpType   = "application/strategic-merge-patch+json"
	mergeType = "application/merge-patch+json"
)

func lease(rest string) string {
	return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"there"` + rest + `}}`
}

// TestRefusals has what upstream answers with 500, or words that clients know.
func TestRefusals(t *testing.T) {
	h := newHarness(t)
	h.must(http.MethodPost, leases, lease(""), "Content-Type", jsonType)
	h.must(http.MethodPost, pods, podBody, "Content-Type", jsonType)
	before := h.entries()
	const bad = metav1.StatusReasonBadRequest
	for name, c := range map[string]struct {
		method, path, body, content, accept string
		code                                int
		reason                              metav1.StatusReason
		message                             string
	}{
		"apply of a type error":        {"PATCH", leases + "/there?fieldManager=m", strings.Replace(lease(""), "}}", `},"spec":{"leaseDurationSeconds":"x"}}`, 1), applyType, "", 400, bad, "failed to create typed patch object"},
		"apply of a time that is none": {"PATCH", leases + "/there?fieldManager=m", strings.Replace(lease(""), "}}", `},"spec":{"renewTime":0}}`, 1), applyType, "", 400, bad, "cannot unmarshal number"},
		"apply that makes one":         {"PATCH", leases + "/new?fieldManager=m", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"holderIdentity":[]}}`, applyType, "", 400, bad, "failed to create typed patch object"},
		"apply of an unknown field":    {"PATCH", leases + "/there?fieldManager=m", lease(`,"colour":"red"`), applyType, "", 400, bad, "failed to create typed patch object"},
		"a new object with a version":  {"POST", leases, lease(`,"resourceVersion":"7"`), jsonType, "", 400, bad, "resourceVersion should not be set on objects to be created"},
		"an update of no version":      {"PUT", leases + "/there", lease(`,"resourceVersion":"x"`), jsonType, "", 400, bad, `invalid resource version "x"`},
		"a patch of no version":        {"PATCH", leases + "/there", `{"metadata":{"resourceVersion":"-1"}}`, mergeType, "", 400, bad, `invalid resource version "-1"`},
		"an apply of no version":       {"PATCH", leases + "/there?fieldManager=m", lease(`,"resourceVersion":"x"`), applyType, "", 400, bad, `invalid resource version "x"`},
		"a patch that made it panic":   {"PATCH", leases + "/there", `[{"op":"replace","path":""}]`, "application/json-patch+json", "", 400, bad, "the patch cannot be applied"},
		"an unknown directive":         {"PATCH", leases + "/there", `{"metadata":{"$patch":"frob"}}`, smpType, "", 400, bad, "unknown patch type: frob"},
		"a directive that is a number": {"PATCH", leases + "/there", `{"$retainKeys":7}`, smpType, "", 400, bad, "invalid patch format of retainKeys"},
		"a patch without a merge key":  {"PATCH", pods + "/there", `{"spec":{"containers":[{"image":"b"}]}}`, smpType, "", 400, bad, "does not contain declared merge key: name"},
		"a patch of other elements":    {"PATCH", pods + "/there", `{"metadata":{"finalizers":[{}]}}`, smpType, "", 400, bad, "list element types are not identical"},
		"a patch in another order":     {"PATCH", pods + "/there", `{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a"}]}}`, smpType, "", 400, bad, "doesn't match $setElementOrder"},
		"a binding to nothing":         {"POST", "/api/v1/namespaces/default/bindings", `{"metadata":{"name":"there"}}`, jsonType, "", 422, "Invalid", "target.name: Required value"},
		"a binding to another kind":    {"POST", pods + "/there/binding", `{"metadata":{"name":"there"},"target":{"kind":"Chair","name":"a"}}`, jsonType, "", 422, "Invalid", "target.kind: Unsupported value"},
		"a namespace of dots":          {"GET", "/api/v1/namespaces/%2e%2e/pods", "", "", "", 400, bad, `Namespace parameter invalid: ".."`},
		"a watch of nothing":           {"GET", "/api/v1/watch", "", "", "", 404, "NotFound", "could not find the requested resource"},
		"a body of no known type":      {"POST", leases, "a", "text/plain", "", 415, "UnsupportedMediaType", "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		"a patch of no known type":     {"PATCH", leases + "/there", "{}", jsonType, "", 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		"an answer of no known type":   {"GET", leases, "", "", "text/html", 406, "NotAcceptable", "406: Not Acceptable"},
		"a body of 3 MiB and 1":        {"POST", leases, strings.Repeat(" ", 3<<20) + "x", jsonType, "", 413, "RequestEntityTooLarge", "limit is 3145728"},
		"a patch of 3 MiB and 1":       {"PATCH", leases + "/there", strings.Repeat(" ", 3<<20) + "x", mergeType, "", 413, "RequestEntityTooLarge", "limit is 3145728"},
		"a deletion of 3 MiB and 1":    {"DELETE", leases + "/there", strings.Repeat(" ", 3<<20) + "x", jsonType, "", 413, "RequestEntityTooLarge", "limit is 3145728"},
	} {
		a := h.do(c.method, c.path, c.body, "Content-Type", c.content, "Accept", c.accept)
		status, err := statusOf(a)
		if err != nil || a.Code != c.code || status.Reason != c.reason || !strings.Contains(status.Message, c.message) {
			t.Errorf("%s: %d %.400s %v", name, a.Code, a.Body, err)
		}
		if now := h.entries(); !maps.Equal(now, before) {
			t.Fatalf("%s changed %v to %v", name, before, now)
		}
	}
}

// TestDryRun: every verb answers as if it had, and nothing is in the log.
func TestDryRun(t *testing.T) {
	h := newHarness(t)
	version := meta(t, h.must(http.MethodPost, leases, lease(""), "Content-Type", jsonType)).ResourceVersion
	before := h.log.machine.Index()
	for _, c := range []struct{ method, path, body, content string }{
		{"POST", leases, strings.Replace(lease(""), "there", "new", 1), jsonType},
		{"PUT", leases + "/there", lease(`,"labels":{"a":"b"},"resourceVersion":"` + version + `"`), jsonType},
		{"PATCH", leases + "/there", `{"metadata":{"labels":{"a":"b"}}}`, mergeType},
		{"PATCH", leases + "/there", `{"metadata":{"labels":{"a":"b"}}}`, smpType},
		{"PATCH", leases + "/new", strings.Replace(lease(""), "there", "new", 1), applyType},
		{"DELETE", leases + "/there", "", ""},
		{"DELETE", leases, "", ""},
	} {
		a := h.must(c.method, c.path+"?dryRun=All&fieldManager=m", c.body, "Content-Type", c.content)
		if strings.Contains(c.body, "labels") && meta(t, a).Labels["a"] != "b" {
			t.Errorf("%s %s: the answer does not show it: %s", c.method, c.content, a.Body)
		}
		if index := h.log.machine.Index(); index != before {
			t.Fatalf("%s %s moved the log from %d to %d", c.method, c.path, before, index)
		}
	}
}
