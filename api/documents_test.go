package api

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMethodsOfDocuments asks for the server's own paths by other methods.
func TestMethodsOfDocuments(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"POST", "/", 200}, {"GET", "/index.html", 200},
		{"GET", "/version", 200}, {"GET", "/version/", 200}, {"GET", "/version//", 200},
		{"POST", "/version", 405}, {"HEAD", "/version", 405}, {"DELETE", "/version/", 405},
		{"GET", "/api", 200}, {"GET", "/api/", 200}, {"GET", "/apis/", 200}, {"GET", "/api/v1/", 200},
		{"GET", "/apis/coordination.k8s.io/", 200}, {"GET", "/apis/coordination.k8s.io/v1/", 200},
		{"GET", leases + "/", 200}, {"GET", pods + "//", 200}, {"GET", "/api/v1/nodes/", 200},
		{"GET", leases + "/none/", 404}, {"GET", "/nosuch", 404}, {"GET", "/api/v2", 404}, {"GET", "/versions", 404},
		{"GET", MembersPath, 200}, {"POST", MembersPath, 405}, {"GET", "/livez", 200}, {"GET", "/readyz", 200},
	} {
		if a := h.do(c.method, c.path, ""); a.Code != c.code {
			t.Errorf("%s %s: %d %.200s, want %d", c.method, c.path, a.Code, a.Body, c.code)
		}
	}
	var index metav1.RootPaths
	if err := json.Unmarshal(h.must(http.MethodGet, "/", "").Body.Bytes(), &index); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api", "/api/v1", "/apis", "/apis/", "/apis/coordination.k8s.io/v1", "/version", "/livez", "/openapi/v2"} {
		if !slices.Contains(index.Paths, path) {
			t.Errorf("%s is not in the index %q", path, index.Paths)
		}
	}
}

// TestWhoMayRead asks as nobody, as somebody without rights, and as a master.
func TestWhoMayRead(t *testing.T) {
	h := newHarness(t)
	const none, user, master = "", "Bearer token-of-ada", "Bearer token-of-root"
	for path, want := range map[string][3]int{
		"/livez": {200, 200, 200}, "/healthz": {200, 200, 200}, "/readyz": {200, 200, 200}, "/version": {200, 200, 200}, "/version/": {200, 200, 200},
		"/livez/ping": {401, 403, 200}, "/": {401, 403, 200}, "/version//": {401, 403, 200},
		"/api": {401, 200, 200}, "/apis": {401, 200, 200}, "/api/v1": {401, 200, 200}, "/openapi/v3": {401, 200, 200},
		"/apis/coordination.k8s.io": {401, 200, 200}, "/apis/coordination.k8s.io/v1": {401, 200, 200},
		"/api/v1/nodes": {401, 403, 200}, leases: {401, 403, 200}, "/api/v1/namespaces/default": {401, 403, 200},
		"/api/v1/watch": {401, 404, 404}, MembersPath: {401, 403, 200}, "/debug/pprof/": {401, 403, 200},
	} {
		for i, who := range []string{none, user, master} {
			r := masters(http.MethodGet, path, "")
			r.Header.Set("Authorization", who)
			if who == none {
				r.Header.Del("Authorization")
			}
			if a := h.serve(r); a.Code != want[i] || a.panicked != "" {
				t.Errorf("%s as %q: %d %.200s %s, want %d", path, who, a.Code, a.Body, a.panicked, want[i])
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete} { // documents are for reading
		r := masters(method, "/api/v1", "")
		r.Header.Set("Authorization", user)
		if a := h.serve(r); a.Code != http.StatusForbidden {
			t.Errorf("%s as a user: %d", method, a.Code)
		}
	}
}

// TestCompression: large answers are compressed for who understands it.
func TestCompression(t *testing.T) {
	h := newHarness(t)
	for i := range 2 {
		body := strings.Replace(lease(`,"annotations":{"k":"`+strings.Repeat("x", 100<<10)+`"}`), "there", fmt.Sprint("l", i), 1)
		h.must(http.MethodPost, leases, body, "Content-Type", jsonType)
	}
	plain := h.must(http.MethodGet, leases, "")
	if enc := plain.Header().Get("Content-Encoding"); enc != "" {
		t.Errorf("nobody asked for %s", enc)
	}
	small := h.must(http.MethodGet, leases+"/l0", "", "Accept-Encoding", "gzip")
	if enc := small.Header().Get("Content-Encoding"); enc != "" {
		t.Errorf("an answer of %d bytes is %s", small.Body.Len(), enc)
	}
	packed := h.must(http.MethodGet, leases, "", "Accept-Encoding", "gzip")
	if enc := packed.Header().Get("Content-Encoding"); enc != "gzip" || packed.Body.Len() > plain.Body.Len()/10 {
		t.Fatalf("%d bytes, encoding %q", packed.Body.Len(), enc)
	}
	reader, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(reader); err != nil || string(body) != plain.Body.String() {
		t.Errorf("unpacked it is another answer, %v", err)
	}
}

// TestDeprecationWarning: whatever is done to Endpoints, the answer warns.
func TestDeprecationWarning(t *testing.T) {
	h := newHarness(t)
	const endpoints = "/api/v1/namespaces/default/endpoints"
	const body = `{"metadata":{"name":"a"}}`
	for _, c := range []struct{ method, path, body, content string }{
		{"POST", endpoints, body, jsonType}, {"GET", endpoints + "/a", "", ""}, {"GET", endpoints, "", ""},
		{"GET", "/api/v1/endpoints", "", ""}, {"GET", endpoints + "?watch=1&timeoutSeconds=1", "", ""},
		{"PUT", endpoints + "/a", body, jsonType}, {"PATCH", endpoints + "/a", "{}", mergeType},
		{"DELETE", endpoints + "/a", "", ""}, {"DELETE", endpoints, "", ""},
	} {
		a := h.must(c.method, c.path, c.body, "Content-Type", c.content)
		if got := a.Header().Values("Warning"); len(got) != 1 || !strings.Contains(got[0], "v1 Endpoints is deprecated in v1.33+") {
			t.Errorf("%s %s: warnings %q", c.method, c.path, got)
		}
	}
	if got := h.must(http.MethodGet, "/api/v1/nodes", "").Header().Values("Warning"); len(got) != 0 {
		t.Errorf("nodes: warnings %q", got)
	}
}
