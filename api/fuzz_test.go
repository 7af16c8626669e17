package api

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"kontiki/api/registry"
)

// at picks from a list by a number that may be anything.
func at[T any](list []T, n uint8) T { return list[int(n)%len(list)] }

var bodyTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}

// FuzzBody creates and updates with bodies that anybody may have made up.
func FuzzBody(f *testing.F) {
	s := newFuzzed(f)
	for kind := range fuzzKinds {
		for _, put := range []bool{false, true} {
			for content := range bodyTypes {
				f.Add(uint8(kind), put, uint8(content), encoded(f, at(fuzzKinds, uint8(kind)).body(), at(bodyTypes, uint8(content))))
			}
		}
	}
	for _, body := range oddBodies {
		for content := range bodyTypes {
			f.Add(uint8(0), true, uint8(content), []byte(body))
			f.Add(uint8(1), false, uint8(content), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, put bool, content uint8, body []byte) {
		k := at(fuzzKinds, which)
		method, path := http.MethodPost, k.collection()
		if put || k.subresource != "" {
			path = k.item()
		}
		if put {
			method = http.MethodPut
		}
		s.try(t, masters(method, path, string(body), "Content-Type", at(bodyTypes, content)))
	})
}

var oddBodies = []string{
	``, `null`, `[]`, `"a"`, `7`, `{}`, `{"metadata":null}`, `{"metadata":[]}`, `{"kind":"Lease"}`, "\x00", "k8s\x00", "k8s\x00\n\x02\x0a\x00",
	"a: &a [*a]", "a: &a [x]\nb: *a", "--- {}\n---\n{}", "? {a: b}\n: c", `{"metadata":{"name":"there","resourceVersion":"-1"}}`,
	`{"metadata":{"name":"there","resourceVersion":"x"}}`, `{"metadata":{"name":"there","resourceVersion":"18446744073709551616"}}`,
	`{"metadata":{"name":"there","uid":"0"}}`, `{"metadata":{"generateName":"a"}}`, `{"metadata":{"name":"there","creationTimestamp":"x"}}`,
	`{"metadata":{"name":"there","deletionTimestamp":"2024-05-01T10:00:00Z","deletionGracePeriodSeconds":-1}}`,
	`{"metadata":{"name":"there","managedFields":[{"manager":"m","operation":"Apply","apiVersion":"coordination.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{":{}}}}]}}`,
	`{"metadata":{"name":"there","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"0","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"1","controller":true}]}}`,
	`{"metadata":{"name":"there"},"spec":{"leaseDurationSeconds":99999999999999999999}}`, `{"metadata":{"name":"there"},"spec":{"leaseDurationSeconds":1.5}}`,
	strings.Repeat(`{"a":`, 2000), strings.Repeat(`[`, 12000),
}

// encoded is a JSON body in another media type. Leave JSON as it is: what YAML
// takes it for is part of what is tested.
func encoded(t testing.TB, body, mediaType string) []byte {
	t.Helper()
	if !strings.Contains(mediaType, "protobuf") {
		return []byte(body)
	}
	codecs := serializer.NewCodecFactory(registry.Scheme())
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer of %s", mediaType)
	}
	obj, kind, err := codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, kind.GroupVersion()), obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var patchMedia = []string{
	"application/json-patch+json", "application/merge-patch+json",
	"application/strategic-merge-patch+json", "application/apply-patch+yaml",
}

// FuzzPatch patches what is there, in every way there is.
func FuzzPatch(f *testing.F) {
	s := newFuzzed(f)
	for kind := range fuzzKinds {
		for media := range patchMedia {
			for _, patch := range oddPatches[media] {
				f.Add(uint8(kind), uint8(media), false, []byte(patch))
			}
			f.Add(uint8(kind), uint8(media), true, []byte(at(fuzzKinds, uint8(kind)).body()))
		}
	}
	f.Fuzz(func(t *testing.T, which, media uint8, force bool, patch []byte) {
		path := at(fuzzKinds, which).item() + "?fieldManager=fuzz"
		if contentType := at(patchMedia, media); force && contentType == "application/apply-patch+yaml" {
			path += "&force=true"
		}
		s.try(t, masters(http.MethodPatch, path, string(patch), "Content-Type", at(patchMedia, media)))
	})
}

var oddPatches = [][]string{{
	`[{"op":"add","path":"/metadata/labels/x","value":"y"}]`, `[{"op":"remove","path":"/metadata/labels/app"}]`,
	`[{"op":"replace","path":"","value":null}]`, `[{"op":"move","from":"/metadata","path":"/metadata/labels"}]`,
	`[{"op":"copy","from":"/spec","path":"/spec/x"}]`, `[{"op":"test","path":"/kind","value":"x"}]`, `[{"op":"add"}]`, `[null]`, `[{}]`, `{}`, `[{"op":"add","path":"/a/-1","value":{}}]`,
	`[{"op":"replace","path":"/metadata","value":"x"}]`, `[{"op":"remove","path":"/metadata"}]`, `[{"op":"add","path":"/spec/containers/99","value":{}}]`,
	`[{"op":"replace","path":"/metadata/resourceVersion","value":"x"}]`, `[{"op":"add","path":7}]`, `[{"op":"copy","from":"","path":""}]`, `[{"op":"add","path":"~","value":1}]`,
}, {
	`{"metadata":{"labels":{"x":"y","app":null}}}`, `null`, `{"metadata":null}`, `{"spec":null}`, `[]`, `7`, `{"metadata":{"resourceVersion":"x"}}`,
	`{"metadata":{"name":null}}`, `{"spec":{"containers":[null]}}`, `{"kind":"Pod"}`, `{"metadata":{"managedFields":[{}]}}`, `{"metadata":{"finalizers":null}}`, `{"apiVersion":7}`,
}, {
	`{"metadata":{"labels":{"x":"y"}}}`, `{"metadata":{"$patch":"frob"}}`, `{"$patch":"delete"}`, `{"$patch":"replace"}`, `{"$patch":7}`, `{"$retainKeys":7}`, `{"$setElementOrder/spec":7}`,
	`{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`, `{"spec":{"containers":[{"image":"b"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a","image":"c"}]}}`,
	`{"spec":{"containers":[{"$patch":"replace"}]}}`, `{"spec":{"containers":["x"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.b/c"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":7}}`,
	`{"spec":{"$retainKeys":["containers"]}}`, `{"metadata":{"finalizers":[{}]}}`, `{"metadata":{"$setElementOrder/finalizers":[7,"x"]}}`, `{"spec":{"tolerations":{"a":1}}}`, `null`, `[]`, `{"metadata":7}`, `{"spec":{"containers":null}}`,
}, {
	`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"there"},"spec":{"leaseDurationSeconds":"x"}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"image":"x"}]}}`, `{"metadata":{"managedFields":[]}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"a"},{"name":"a"}]}}`, `[]`, `null`, `7`, `a: [`, `{"apiVersion":"/","kind":""}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there","resourceVersion":"x"}}`, "apiVersion: v1\nkind: Node\nmetadata: {name: there, labels: {1: 2}}\n",
}}

// FuzzQuery asks with query strings that anybody may have made up. The body of
// a deletion is options, so it comes from the input, too.
func FuzzQuery(f *testing.F) {
	s := newFuzzed(f)
	for _, query := range oddQueries {
		for verb := range uint8(6) {
			f.Add(verb, uint8(0), query)
		}
		f.Add(uint8(0), uint8(5), query)
		f.Add(uint8(0), uint8(1), query+"&watch=1")
	}
	f.Fuzz(func(t *testing.T, verb, which uint8, query string) {
		k := at(fuzzKinds[:7], which)
		target := []string{k.collection(), k.item(), k.prefix + "/" + k.resource, k.item(), k.collection(), k.collection()}
		method := []string{http.MethodGet, http.MethodGet, http.MethodGet, http.MethodDelete, http.MethodDelete, http.MethodPost}
		if at([]bool{false, false, true, false, false, false}, verb) {
			query = "watch=true&timeoutSeconds=1&" + query
		}
		r := masters(at(method, verb), at(target, verb), k.body(), "Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			r = masters(r.Method, r.URL.Path, "")
		}
		r.URL.RawQuery = query
		// A write whose time is over goes on behind the 504, into the next input.
		if limit, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && limit < time.Minute && r.Method != http.MethodGet {
			return
		}
		s.try(t, r)
	})
}

var oddQueries = []string{
	"", "%", "a=%zz&limit=1", ";", "&&==", "limit=1", "limit=-1", "limit=9223372036854775808", "limit=x", "labelSelector=app%3Da", "labelSelector=app+in+(a,b),!c", "labelSelector=%21%21", "labelSelector=a+notin+(",
	"labelSelector=a%3E1", "fieldSelector=metadata.name%3Dthere", "fieldSelector=metadata.name%21%3D", "fieldSelector=%5C", "fieldSelector=a%3Db", "fieldSelector=metadata.name%3Da,metadata.name%3Db", "fieldSelector=spec.nodeName%3Da%5C%2Cb",
	"resourceVersion=0", "resourceVersion=1", "resourceVersion=-1", "resourceVersion=99999999", "resourceVersion=18446744073709551616", "resourceVersion=x", "resourceVersion=1&resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact",
	"resourceVersionMatch=NotOlderThan", "resourceVersionMatch=x&resourceVersion=1", "continue=x", "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4XHUwMDAwIn0", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vIn0&resourceVersion=1",
	"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "watch=1&sendInitialEvents=true", "watch=x", "watch=1&resourceVersion=99999999", "watch=1&resourceVersion=1", "watch=1&timeoutSeconds=-1", "watch=1&timeoutSeconds=99999999999",
	"watch=1&limit=1&continue=x", "watch=1&shardSelector=x", "timeoutSeconds=x", "timeout=1ns", "timeout=-1s", "timeout=x", "pretty=1", "pretty=x", "dryRun=All", "dryRun=x", "dryRun=All&dryRun=All", "fieldManager=a", "fieldManager=%00", "fieldValidation=Strict", "fieldValidation=x",
	"gracePeriodSeconds=0", "gracePeriodSeconds=-1", "gracePeriodSeconds=x", "propagationPolicy=Foreground", "propagationPolicy=Orphan", "propagationPolicy=x", "orphanDependents=true", "orphanDependents=true&propagationPolicy=Orphan", "preconditions.uid=x", "includeObject=Object", "includeObject=x",
	"ignoreStoreReadErrorWithClusterBreakingPotential=true", "ignoreStoreReadErrorWithClusterBreakingPotential=x", "shardSelector=shard(a)", "shardSelector=%7B", "limit=1&limit=2", "exact=true&export=true",
}

// FuzzPath asks for paths that anybody may have made up, by any method.
func FuzzPath(f *testing.F) {
	s := newFuzzed(f)
	for _, k := range fuzzKinds {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FROB"} {
			f.Add(method, k.item())
		}
		f.Add("GET", k.prefix+"/watch"+strings.TrimPrefix(k.item(), k.prefix))
	}
	for _, path := range oddPaths {
		f.Add("GET", path)
		f.Add("DELETE", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		// As net/http reads it, so that nothing is tried that cannot arrive.
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil || strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			return // profiles last as long as they are asked to
		}
		r.Header.Set("Authorization", "Bearer token-of-root")
		s.try(t, r)
	})
}

var oddPaths = []string{
	"/", "*", "//", "/api", "/api/", "/api//", "/api/v1", "/api/v2", "/apis", "/apis/", "/apis/x", "/apis/coordination.k8s.io", "/apis/coordination.k8s.io/v1/", "/apis/coordination.k8s.io/v9", "/version", "/version/", "/livez", "/readyz/x", "/healthz/ping", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/../v2", "/kontiki/v1/members", "/index.html", "/metrics", "/logs",
	"/api/v1/namespaces//pods", "/api/v1/namespaces//pods/there", "/api/v1/namespaces/default//pods", "/api/v1/namespaces/../nodes", "/api/v1/namespaces/%2e%2e/pods", "/api/v1/namespaces/a%2fb/pods", "/api/v1/namespaces/%00/pods/%00", "/api/v1/nodes/%ff", "/api/v1/nodes/" + url.PathEscape("ä"), "/api/v1/namespaces/default/pods/there/log", "/api/v1/namespaces/default/pods/there/log?tailLines=x",
	"/api/v1/namespaces/default/pods/there/exec", "/api/v1/namespaces/default/pods/there/attach?stdout=1", "/api/v1/namespaces/default/pods/there/portforward?ports=x", "/api/v1/namespaces/default/pods/there/proxy", "/api/v1/namespaces/default/pods/there/proxy/a/b", "/api/v1/namespaces/default/pods/https:there:80/proxy/", "/api/v1/nodes/there/proxy", "/api/v1/nodes/there:x/proxy/../x", "/api/v1/nodes/" + strings.Repeat("a", 5000), "/api/v1/proxy/nodes/there", "/api/v1/watch", "/api/v1/watch/", "/api/v1/watch/namespaces/default", "/api/v1/watch/pods?timeoutSeconds=1", "http://x/api/v1/nodes",
}
