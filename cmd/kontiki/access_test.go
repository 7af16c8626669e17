package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"kontiki/cluster/pki"
)

// TestAccess asks with every kind of good and bad credentials.
func TestAccess(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	lines := "token-of-root,root,1,\"system:masters\"\ntoken-of-ada,ada,2,\"staff,readers\"\ntoken-of-bob,bob,3\n"
	if err := os.WriteFile(tokens, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 1, func(_ int, cfg *Config) { cfg.TokenAuthFile = tokens })
	ours, err := pki.Load(c.nodes[0].cfg.PKIDir)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := pki.EnsureCluster(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	masters := []string{user.SystemPrivilegedGroup}
	const ok, who, no = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	paths := [3][]string{
		{"/livez", "/healthz", "/readyz", "/version"},
		{"/api", "/apis", "/api/v1", "/apis/events.k8s.io/v1", "/openapi/v2", "/openapi/v3"},
		{"/api/v1/namespaces", "/api/v1/namespaces/default", "/apis/coordination.k8s.io/v1/leases", "/kontiki/v1/members", "/kontiki/v1/status", "/kontiki/v1/snapshot", "/metrics", "/debug/pprof/heap", "/debug/pprof/cmdline", "/readyz/ping"},
	}
	for name, try := range map[string]struct {
		client *rawClient
		want   [3]int // for the three kinds of paths
	}{
		"nothing":                    {c.stranger(0, ""), [3]int{ok, who, who}},
		"a token nobody has":         {c.stranger(0, "guess"), [3]int{who, who, who}},
		"a word that is not a token": {c.stranger(0, "").with("Authorization", "Basic cm9vdDpyb290"), [3]int{ok, who, who}},
		"another CA's certificate":   {c.stranger(0, "", clientCert(t, theirs, "root", masters, time.Hour)), [3]int{who, who, who}},
		"a certificate of the past":  {c.stranger(0, "", clientCert(t, ours, "root", masters, -time.Minute)), [3]int{who, who, who}},
		"a master's certificate":     {c.stranger(0, "", clientCert(t, ours, "root", masters, time.Hour)), [3]int{ok, ok, ok}},
		"a user's certificate":       {c.stranger(0, "", clientCert(t, ours, "eve", []string{"staff"}, time.Hour)), [3]int{ok, ok, no}},
		"a master's token":           {c.stranger(0, "token-of-root"), [3]int{ok, ok, ok}},
		"a user's token":             {c.stranger(0, "token-of-ada"), [3]int{ok, ok, no}},
		"a user's without groups":    {c.stranger(0, "token-of-bob"), [3]int{ok, ok, no}},
		"a master who acts as user":  {c.stranger(0, "token-of-root").with("Impersonate-User", "ada"), [3]int{ok, ok, no}},
		"a user who acts as master":  {c.stranger(0, "token-of-ada").with("Impersonate-User", "root").with("Impersonate-Group", "system:masters"), [3]int{no, no, no}},
		"a bad token, a good cert":   {c.stranger(0, "guess", clientCert(t, ours, "root", masters, time.Hour)), [3]int{ok, ok, ok}},
	} {
		for kind, want := range try.want {
			for _, path := range paths[kind] {
				if err := checkAccess(try.client, path, want); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

func checkAccess(client *rawClient, path string, want int) error {
	a := client.get(path)
	if a.code != want {
		return fmt.Errorf("%s: answer %d, want %d: %.200s", path, a.code, want, a.body)
	}
	if want == http.StatusOK {
		return nil
	}
	reason := map[int]metav1.StatusReason{
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	}[want]
	if got := a.status(client.t).Reason; got != reason {
		return fmt.Errorf("%s: reason %s, want %s", path, got, reason)
	}
	return nil
}

func clientCert(t *testing.T, root *pki.Cluster, name string, groups []string, life time.Duration) tls.Certificate {
	t.Helper()
	pair, err := root.IssueClient(name, groups, life)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestDocuments reaches every document about the API.
func TestDocuments(t *testing.T) {
	c := newCluster(t, 1, nil)
	client := c.http(0)
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, doc := range []struct{ path, accept, kind string }{
		{"/api", "", "APIVersions"},
		{"/apis", "", "APIGroupList"},
		{"/api", aggregated, "APIGroupDiscoveryList"},
		{"/apis", aggregated, "APIGroupDiscoveryList"},
		{"/api/v1", "", "APIResourceList"},
		{"/apis/events.k8s.io", "", "APIGroup"},
		{"/apis/events.k8s.io/v1", "", "APIResourceList"},
		{"/apis/coordination.k8s.io", "", "APIGroup"},
		{"/apis/coordination.k8s.io/v1", "", "APIResourceList"},
	} {
		for _, path := range []string{doc.path, doc.path + "/"} {
			var got metav1.TypeMeta
			a := client.with("Accept", doc.accept).get(path)
			if err := fromJSON(a.body, &got); a.code != http.StatusOK || err != nil || got.Kind != doc.kind {
				t.Errorf("%s: answer %d, kind %q, want %s: %v", path, a.code, got.Kind, doc.kind, err)
			}
		}
	}
	for _, path := range []string{"/apis/apps", "/apis/apps/v1", "/api/v2", "/api/v1/none", "/api/v1/namespaces/default/none", "/none"} {
		if a := client.get(path); a.code != http.StatusNotFound {
			t.Errorf("%s: answer %d, want 404", path, a.code)
		}
	}
}

// TestOpenAPI reads both versions of the schema as kubectl does.
func TestOpenAPI(t *testing.T) {
	c := newCluster(t, 1, nil)
	client := c.http(0)
	var v2 struct {
		Swagger     string
		Paths       map[string]any
		Definitions map[string]any
	}
	if err := fromJSON(client.get("/openapi/v2").body, &v2); err != nil || v2.Swagger != "2.0" {
		t.Fatalf("version %q, %v", v2.Swagger, err)
	}
	for _, path := range []string{"/api/v1/nodes/{name}/status", "/apis/events.k8s.io/v1/namespaces/{namespace}/events", "/api/", "/api/v1/"} {
		if v2.Paths[path] == nil {
			t.Errorf("%s is not in /openapi/v2", path)
		}
	}
	if v2.Definitions["io.k8s.api.core.v1.Pod"] == nil {
		t.Error("there is no definition of a pod in /openapi/v2")
	}
	proto := client.with("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf").get("/openapi/v2")
	if proto.code != http.StatusOK || len(proto.body) < 1000 {
		t.Errorf("/openapi/v2 in protobuf: %d, %d bytes", proto.code, len(proto.body))
	}
	var v3 struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := fromJSON(client.get("/openapi/v3").body, &v3); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"api/v1", "apis/events.k8s.io/v1", "apis/coordination.k8s.io/v1"} {
		var doc struct {
			OpenAPI string
			Paths   map[string]any
		}
		a := client.get(v3.Paths[group].ServerRelativeURL)
		if err := fromJSON(a.body, &doc); err != nil || doc.OpenAPI == "" || len(doc.Paths) == 0 {
			t.Errorf("/openapi/v3/%s: answer %d, version %q, %d paths, %v", group, a.code, doc.OpenAPI, len(doc.Paths), err)
		}
	}
}

// TestMembers: every node knows all, and who leads.
func TestMembers(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader := c.nodes[c.leader()].cfg.Name
	for i, n := range c.nodes {
		until(t, func() error {
			var got struct {
				Name, Leader string
				Members      []struct {
					Name, Role, APIAddr string
					Alive               bool
				}
			}
			if err := fromJSON(c.http(i).get("/kontiki/v1/members").body, &got); err != nil {
				return err
			}
			var names []string
			for _, m := range got.Members {
				if m.Role == "voter" && m.Alive && m.APIAddr != "" {
					names = append(names, m.Name)
				}
			}
			if got.Name != n.cfg.Name || got.Leader != leader || !slices.Equal(names, []string{"n0", "n1", "n2"}) {
				return fmt.Errorf("node %d says %+v", i, got)
			}
			return nil
		})
	}
}
