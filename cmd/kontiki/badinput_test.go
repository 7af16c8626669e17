package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// badInput is a request that must be refused and must change nothing.
type badInput struct {
	name    string
	method  string
	path    string
	content string
	body    string
	code    int
	reason  metav1.StatusReason
}

const (
	jsonType   = "application/json"
	yamlType   = "application/yaml"
	protoType  = "application/vnd.kubernetes.protobuf"
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	smpPatch   = "application/strategic-merge-patch+json"
	applyPatch = "application/apply-patch+yaml"

	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	leasePath  = leasesPath + "/there"
	podsPath   = "/api/v1/namespaces/default/pods"
	podPath    = podsPath + "/there"
)

func lease(name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q%s}}`, name, rest)
}

// badInputs are in groups: bodies, objects, patches, options, paths.
var badInputs = [][]badInput{{
	{"no body", "POST", leasesPath, jsonType, "", 400, "BadRequest"},
	{"half of JSON", "POST", leasesPath, jsonType, `{"kind":`, 400, "BadRequest"},
	{"not JSON", "POST", leasesPath, jsonType, "\x00\xff", 400, "BadRequest"},
	{"a number", "POST", leasesPath, jsonType, "7", 400, "BadRequest"},
	{"JSON too deep", "POST", leasesPath, jsonType, `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", 400, "BadRequest"},
	{"not YAML", "POST", leasesPath, yamlType, "a: [", 400, "BadRequest"},
	{"YAML that explodes", "POST", leasesPath, yamlType, yamlBomb(), 400, "BadRequest"},
	{"not protobuf", "POST", leasesPath, protoType, "k8s\x00\xff\xff", 400, "BadRequest"},
	{"protobuf without its prefix", "POST", leasesPath, protoType, "nothing", 400, "BadRequest"},
	{"a body of 4 MiB", "POST", leasesPath, jsonType, lease("big", `,"labels":{"a":"`+strings.Repeat("x", 4<<20)+`"}`), 413, "RequestEntityTooLarge"},
	{"a patch of 4 MiB", "PATCH", leasePath, mergePatch, `{"metadata":{"labels":{"a":"` + strings.Repeat("x", 4<<20) + `"}}}`, 413, "RequestEntityTooLarge"},
	{"a deletion of 4 MiB", "DELETE", leasePath, jsonType, `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, 413, "RequestEntityTooLarge"},
	{"half of a deletion", "DELETE", leasePath, jsonType, `{"a"`, 400, "BadRequest"},
	{"a deletion that is a lease", "DELETE", leasePath, jsonType, lease("there", ""), 400, "BadRequest"},
}, {
	{"another kind", "POST", leasesPath, jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 400, "BadRequest"},
	{"an unknown kind", "POST", leasesPath, jsonType, `{"apiVersion":"coordination.k8s.io/v1","kind":"Least","metadata":{"name":"a"}}`, 400, "BadRequest"},
	{"another version", "POST", leasesPath, jsonType, `{"apiVersion":"coordination.k8s.io/v7","kind":"Lease","metadata":{"name":"a"}}`, 400, "BadRequest"},
	{"a field of another type", "POST", leasesPath, jsonType, lease("a", `,"labels":"none"`), 400, "BadRequest"},
	{"an unknown field, strict", "POST", leasesPath + "?fieldValidation=Strict", jsonType, lease("a", `,"colour":"red"`), 400, "BadRequest"},
	{"a field twice, strict", "POST", leasesPath + "?fieldValidation=Strict", jsonType, lease("a", `,"name":"b"`), 400, "BadRequest"},
	{"another namespace", "POST", leasesPath, jsonType, lease("a", `,"namespace":"kube-system"`), 400, "BadRequest"},
	{"a namespace that is not there", "POST", strings.Replace(leasesPath, "default", "none", 1), jsonType, lease("a", ""), 404, "NotFound"},
	{"no name", "POST", leasesPath, jsonType, lease("", ""), 422, "Invalid"},
	{"a bad name", "POST", leasesPath, jsonType, lease("Not A Name", ""), 422, "Invalid"},
	{"a name with a slash", "POST", leasesPath, jsonType, lease("a/b", ""), 422, "Invalid"},
	{"a bad label", "POST", leasesPath, jsonType, lease("a", `,"labels":{"a":"b c"}`), 422, "Invalid"},
	{"a name that is taken", "POST", leasesPath, jsonType, lease("there", ""), 409, "AlreadyExists"},
	{"a pod without containers", "POST", podsPath, jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 422, "Invalid"},
	{"an object with a version", "POST", leasesPath, jsonType, lease("a", `,"resourceVersion":"7"`), 400, "BadRequest"},
	{"another name than in the path", "PUT", leasePath, jsonType, lease("here", ""), 400, "BadRequest"},
	{"an old version", "PUT", leasePath, jsonType, lease("there", `,"resourceVersion":"1"`), 409, "Conflict"},
	{"a bad version", "PUT", leasePath, jsonType, lease("there", `,"resourceVersion":"x"`), 400, metav1.StatusReasonBadRequest},
	{"another object's identity", "PUT", leasePath, jsonType, lease("there", `,"uid":"0"`), 409, "Conflict"},
	{"no containers any more", "PUT", podPath, jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"}}`, 422, "Invalid"},
	{"deletion of another identity", "DELETE", leasePath, jsonType, `{"preconditions":{"uid":"0"}}`, 409, "Conflict"},
	{"deletion of an old version", "DELETE", leasePath, jsonType, `{"preconditions":{"resourceVersion":"1"}}`, 409, "Conflict"},
	{"deletion with a bad policy", "DELETE", leasePath, jsonType, `{"propagationPolicy":"Maybe"}`, 422, "Invalid"},
	{"an object that grows too large", "PATCH", podPath, jsonPatch, `[{"op":"replace","path":"/spec/containers/0/image","value":"` + strings.Repeat("x", 2<<20) + `"}]`, 413, "RequestEntityTooLarge"},
}, {
	{"half a JSON patch", "PATCH", leasePath, jsonPatch, `[{"op"`, 400, "BadRequest"},
	{"an unknown operation", "PATCH", leasePath, jsonPatch, `[{"op":"frob","path":"/metadata"}]`, 422, "Invalid"},
	{"a path that is not there", "PATCH", leasePath, jsonPatch, `[{"op":"remove","path":"/spec/none"}]`, 422, "Invalid"},
	{"too many operations", "PATCH", leasePath, jsonPatch, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Lease"},`, 10001) + `{"op":"test","path":"/kind","value":"Lease"}]`, 413, "RequestEntityTooLarge"},
	{"half a merge patch", "PATCH", leasePath, mergePatch, `{"metadata"`, 400, "BadRequest"},
	{"a merge patch that is a list", "PATCH", leasePath, mergePatch, `[]`, 400, "BadRequest"},
	{"a merge patch to another name", "PATCH", leasePath, mergePatch, `{"metadata":{"name":"here"}}`, 400, "BadRequest"},
	{"a merge patch to a bad label", "PATCH", leasePath, mergePatch, `{"metadata":{"labels":{"a":"b c"}}}`, 422, "Invalid"},
	{"a merge patch of an old version", "PATCH", leasePath, mergePatch, `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`, 409, "Conflict"},
	{"half a strategic patch", "PATCH", leasePath, smpPatch, `{"metadata"`, 400, "BadRequest"},
	{"a bad directive", "PATCH", leasePath, smpPatch, `{"metadata":{"$patch":"frob"}}`, 400, metav1.StatusReasonBadRequest},
	{"half an apply", "PATCH", leasePath + "?fieldManager=m", applyPatch, `{"metadata"`, 400, "BadRequest"},
	{"apply without a manager", "PATCH", leasePath, applyPatch, lease("there", ""), 422, "Invalid"},
	{"apply of another kind", "PATCH", leasePath + "?fieldManager=m", applyPatch, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"}}`, 400, "BadRequest"},
	{"apply to what is another's", "PATCH", leasePath + "?fieldManager=m", applyPatch, lease("there", `,"labels":{"owner":"me"}`), 409, "Conflict"},
	{"a patch of what is not there", "PATCH", leasesPath + "/none", mergePatch, `{}`, 404, "NotFound"},
}, {
	{"a bad limit", "GET", leasesPath + "?limit=x", "", "", 400, "BadRequest"},
	{"a bad label selector", "GET", leasesPath + "?labelSelector=a%3Db%3Dc", "", "", 400, "BadRequest"},
	{"a bad field selector", "GET", leasesPath + "?fieldSelector=spec.holderIdentity%3Dme", "", "", 400, "BadRequest"},
	{"a bad list version", "GET", leasesPath + "?resourceVersion=x", "", "", 400, "BadRequest"},
	{"a bad get version", "GET", leasePath + "?resourceVersion=x", "", "", 400, "BadRequest"},
	{"a bad watch version", "GET", leasesPath + "?watch=1&resourceVersion=x", "", "", 400, "BadRequest"},
	{"a bad match", "GET", leasesPath + "?resourceVersion=1&resourceVersionMatch=Maybe", "", "", 422, "Invalid"},
	{"a match of nothing", "GET", leasesPath + "?resourceVersionMatch=Exact", "", "", 422, "Invalid"},
	{"a bad continue token", "GET", leasesPath + "?continue=x", "", "", 400, "BadRequest"},
	{"initial events of a list", "GET", leasesPath + "?sendInitialEvents=true", "", "", 422, "Invalid"},
	{"a bad timeout", "GET", leasesPath + "?timeout=x", "", "", 400, "BadRequest"},
	{"a bad dry run", "POST", leasesPath + "?dryRun=Some", jsonType, lease("a", ""), 422, "Invalid"},
	{"a bad field validation", "POST", leasesPath + "?fieldValidation=Some", jsonType, lease("a", ""), 422, "Invalid"},
	{"a bad manager", "POST", leasesPath + "?fieldManager=" + strings.Repeat("m", 200), jsonType, lease("a", ""), 422, "Invalid"},
	{"a deletion of all with a bad selector", "DELETE", leasesPath + "?labelSelector=a%3Db%3Dc", "", "", 400, "BadRequest"},
}, {
	{"a creation at an item", "POST", leasePath, jsonType, lease("there", ""), 405, "MethodNotAllowed"},
	{"an update of a collection", "PUT", leasesPath, jsonType, lease("a", ""), 405, "MethodNotAllowed"},
	{"a patch of a collection", "PATCH", leasesPath, mergePatch, "{}", 405, "MethodNotAllowed"},
	{"an unknown method", "FROB", leasePath, "", "", 405, "MethodNotAllowed"},
	{"a creation without a namespace", "POST", "/apis/coordination.k8s.io/v1/leases", jsonType, lease("a", ""), 405, "MethodNotAllowed"},
	{"deletion of all namespaces", "DELETE", "/api/v1/namespaces", "", "", 405, "MethodNotAllowed"},
	{"an unknown resource", "POST", "/api/v1/namespaces/default/chairs", jsonType, "{}", 404, "NotFound"},
	{"an unknown subresource", "PUT", leasePath + "/status", jsonType, lease("there", ""), 404, "NotFound"},
	{"a path above the collection", "DELETE", leasesPath + "/../../kube-system/leases", "", "", 404, "NotFound"},
	{"a path with a double slash", "DELETE", leasesPath + "//there", "", "", 404, "NotFound"},
	{"a name of dots", "DELETE", leasesPath + "/%2e%2e", "", "", 400, "BadRequest"},
	{"a name with a slash in it", "GET", leasesPath + "/a%2fb", "", "", 404, "NotFound"},
}}

// yamlBomb is a few lines that would become gigabytes.
func yamlBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// TestBadInput: each is refused with upstream's Status and changes nothing, by
// the versions of the objects and of the lists. A conflict may be one that the
// log has decided: then its entry moves the lists' versions on.
func TestBadInput(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.waitServersPublished() // the last thing that is written by itself
	client := c.http(0)
	mustCreate(t, client, leasesPath+"?fieldManager=owner", lease("there", `,"labels":{"owner":"you"}`))
	mustCreate(t, client, podsPath, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"a","image":"a","env":[{"name":"A","value":"`+strings.Repeat("x", 2<<20)+`"}]}]}}`)
	before := c.fingerprint()
	for _, group := range badInputs {
		for _, bad := range group {
			a := client.with("Content-Type", bad.content).do(bad.method, bad.path, []byte(bad.body))
			if a.code != bad.code {
				t.Errorf("%s: answer %d, want %d: %.300s", bad.name, a.code, bad.code, a.body)
				continue
			}
			if status := a.status(t); status.Reason != bad.reason || status.Status != metav1.StatusFailure || status.Message == "" {
				t.Errorf("%s: %+v, want reason %s", bad.name, status, bad.reason)
			}
			after := c.fingerprint()
			if bad.code == http.StatusConflict {
				before.index, before.digest = after.index, after.digest
			}
			if after != before {
				t.Fatalf("%s: changed from %+v to %+v", bad.name, before, after)
			}
		}
	}
}

// TestDryRun: everything but the writing happens.
func TestDryRun(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.waitServersPublished() // the last thing that is written by itself
	client := c.http(0)
	mustCreate(t, client, leasesPath, lease("there", ""))
	mustCreate(t, client, podsPath, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"a","image":"a"}]}}`)
	var at metav1.PartialObjectMetadata
	if err := fromJSON(client.get(leasePath).body, &at); err != nil {
		t.Fatal(err)
	}
	before := c.fingerprint()
	for _, dry := range []badInput{
		{"create", "POST", leasesPath, jsonType, lease("new", ""), 201, ""},
		{"update", "PUT", leasePath, jsonType, lease("there", `,"labels":{"a":"b"},"resourceVersion":"`+at.ResourceVersion+`"`), 200, ""},
		{"patch", "PATCH", leasePath, mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, 200, ""},
		{"delete", "DELETE", leasePath, jsonType, "", 200, ""},
		{"deletecollection", "DELETE", leasesPath, jsonType, "", 200, ""},
		{"create twice", "POST", leasesPath, jsonType, lease("there", ""), 409, "AlreadyExists"},
		{"evict", "POST", podPath + "/eviction", jsonType, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"there"}}`, 201, ""},
		{"bind", "POST", podPath + "/binding", jsonType, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"there"},"target":{"kind":"Node","name":"n"}}`, 201, ""},
	} {
		a := client.with("Content-Type", dry.content).do(dry.method, dry.path+"?dryRun=All", []byte(dry.body))
		if a.code != dry.code {
			t.Errorf("%s: answer %d, want %d: %s", dry.name, a.code, dry.code, a.body)
		}
		if after := c.fingerprint(); after != before {
			t.Fatalf("%s: changed from %+v to %+v", dry.name, before, after)
		}
	}
}

func mustCreate(t *testing.T, client *rawClient, path, body string) {
	t.Helper()
	if a := client.with("Content-Type", jsonType).do(http.MethodPost, path, []byte(body)); a.code != http.StatusCreated {
		t.Fatalf("create: %d %.300s", a.code, a.body)
	}
}

// state is what a request changes, or not.
type state struct {
	index   string // of the lists
	digest  [32]byte
	objects string // with their versions
}

// fingerprint is the state of a single node, as clients see it.
func (c *testCluster) fingerprint() (s state) {
	c.t.Helper()
	s.digest = c.nodes[0].State.View().Digest()
	for _, path := range []string{leasesPath, podsPath} {
		var list metav1.PartialObjectMetadataList
		a := c.http(0).with("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").get(path)
		if err := fromJSON(a.body, &list); err != nil || a.code != http.StatusOK {
			c.t.Fatalf("%s: %d %v", path, a.code, err)
		}
		s.index += " " + list.ResourceVersion
		for _, item := range list.Items {
			s.objects += " " + item.Name + " " + item.ResourceVersion
		}
	}
	return s
}
