package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"kontiki/api/auth"
)

const tokens = "token-of-root,root,1,\"system:masters\"\ntoken-of-ada,ada,2,\"staff,readers\"\ntoken-of-bob,bob,3\n"

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.cert = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign fills in what all certificates have; the authority's own is the first.
func (a *authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) client(t testing.TB, usage x509.ExtKeyUsage, expires time.Duration, name string, groups ...string) *x509.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, NotAfter: time.Now().Add(expires),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, newKey(t))
}

func newAuthenticator(t *testing.T, ca *authority, lines string) (authenticator.Request, error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return auth.NewAuthenticator(pool, file)
}

// TestWho tries every kind of credentials.
func TestWho(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	who, err := newAuthenticator(t, ours, tokens)
	if err != nil {
		t.Fatal(err)
	}
	const all, client = user.AllAuthenticated, x509.ExtKeyUsageClientAuth
	socket := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("token-of-ada"))
	for name, c := range map[string]struct {
		path, token, protocol string
		cert                  *x509.Certificate
		want                  string // user and groups; none: refused
		groups                []string
	}{
		"nobody, public":              {path: "/livez", want: user.Anonymous, groups: []string{user.AllUnauthenticated}},
		"nobody, public with a slash": {path: "/version/", want: user.Anonymous, groups: []string{user.AllUnauthenticated}},
		"nobody, below public":        {path: "/livez/ping"},
		"nobody, to join":             {path: auth.JoinPath, want: user.Anonymous, groups: []string{user.AllUnauthenticated}},
		"nobody, below joining":       {path: auth.JoinPath + "/x"},
		"nobody, discovery":           {path: "/api"},
		"nobody, resource":            {path: "/api/v1/nodes"},
		"token":                       {path: "/api", token: "token-of-ada", want: "ada", groups: []string{"staff", "readers", all}},
		"token without groups":        {path: "/api", token: "token-of-bob", want: "bob", groups: []string{all}},
		"unknown token, public":       {path: "/livez", token: "guess"},
		"part of a token":             {path: "/livez", token: "token-of-ad"},
		"websocket token":             {path: "/api", protocol: socket + ", v4.channel.k8s.io", want: "ada", groups: []string{"staff", "readers", all}},
		"unknown websocket token":     {path: "/livez", protocol: "base64url.bearer.authorization.k8s.io.Z3Vlc3M, v4.channel.k8s.io"},
		"certificate":                 {path: "/api", cert: ours.client(t, client, time.Hour, "eve", "a", "b"), want: "eve", groups: []string{"a", "b", all}},
		"certificate of another CA":   {path: "/livez", cert: theirs.client(t, client, time.Hour, "eve", user.SystemPrivilegedGroup)},
		"certificate of the past":     {path: "/livez", cert: ours.client(t, client, -time.Minute, "eve")},
		"certificate for servers":     {path: "/livez", cert: ours.client(t, x509.ExtKeyUsageServerAuth, time.Hour, "eve")},
		"certificate without a name":  {path: "/api", cert: ours.client(t, client, time.Hour, "")}, // upstream: nobody
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r = r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{Path: c.path, Verb: "get"}))
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.protocol != "" {
			r.Header.Set("Connection", "upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-WebSocket-Protocol", c.protocol)
		}
		if c.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.cert}}
		}
		got, ok, err := who.AuthenticateRequest(r)
		switch {
		case c.want == "" && ok:
			t.Errorf("%s: taken for %+v", name, got.User)
		case c.want != "" && (!ok || err != nil):
			t.Errorf("%s: refused, %v", name, err)
		case ok && (got.User.GetName() != c.want || !slices.Equal(got.User.GetGroups(), c.groups)):
			t.Errorf("%s: taken for %+v", name, got.User)
		}
	}
}

// TestTokenFiles: a file that cannot be read says what a line should be.
func TestTokenFiles(t *testing.T) {
	ca := newAuthority(t)
	for _, lines := range []string{"token\n", "token,user\n", "\"token\n"} {
		if _, err := newAuthenticator(t, ca, lines); err == nil || !strings.Contains(err.Error(), "token,user,uid") {
			t.Errorf("%q: %v", lines, err)
		}
	}
	if _, err := auth.NewAuthenticator(x509.NewCertPool(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
	if _, err := auth.NewAuthenticator(x509.NewCertPool(), ""); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

// TestWhat has every kind of user ask for every kind of thing.
func TestWhat(t *testing.T) {
	self, ok, err := auth.Self().AuthenticateRequest(nil)
	if !ok || err != nil {
		t.Fatalf("the server does not know itself: %v", err)
	}
	users := []user.Info{
		&user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		&user.DefaultInfo{Name: "ada", Groups: []string{"staff", user.AllAuthenticated}},
		&user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}},
		self.User,
	}
	what := auth.NewAuthorizer()
	const yes, no = true, false
	for _, c := range []struct {
		verb, path, resource string
		want                 []bool // by user
	}{
		{"get", "/livez", "", []bool{yes, yes, yes, yes}},
		{"get", "/version/", "", []bool{yes, yes, yes, yes}},
		{"post", "/livez", "", []bool{no, no, yes, yes}},
		{"get", "/livez/ping", "", []bool{no, no, yes, yes}},
		{"post", auth.JoinPath, "", []bool{yes, yes, yes, yes}},
		{"get", auth.JoinPath, "", []bool{no, no, yes, yes}},
		{"post", auth.JoinPath + "/x", "", []bool{no, no, yes, yes}},
		{"post", auth.JoinPath, "nodes", []bool{no, no, yes, yes}},
		{"get", "/api", "", []bool{no, yes, yes, yes}},
		{"get", "/apis/coordination.k8s.io/v1", "", []bool{no, yes, yes, yes}},
		{"get", "/openapi/v3/api/v1", "", []bool{no, yes, yes, yes}},
		{"get", "/apiserver", "", []bool{no, no, yes, yes}},
		{"put", "/api", "", []bool{no, no, yes, yes}},
		{"get", "/", "", []bool{no, no, yes, yes}},
		{"get", "/api/v1/nodes", "nodes", []bool{no, no, yes, yes}},
		{"get", "/livez", "nodes", []bool{no, no, yes, yes}}, // the path is not what counts then
		{"delete", "/api/v1/nodes/a", "nodes", []bool{no, no, yes, yes}},
	} {
		for i, u := range users {
			decision, _, err := what.Authorize(t.Context(), authorizer.AttributesRecord{
				User: u, Verb: c.verb, Path: c.path, Resource: c.resource, ResourceRequest: c.resource != "",
			})
			if err != nil || (decision == authorizer.DecisionAllow) != c.want[i] {
				t.Errorf("%s %s by %s: decision %d %v, want %t", c.verb, c.path, u.GetName(), decision, err, c.want[i])
			}
		}
	}
}

// TestRememberedCertificate asks with a certificate often, until it expires: it
// is verified once, and refused when its time is over.
func TestRememberedCertificate(t *testing.T) {
	ca := newAuthority(t)
	authn, err := newAuthenticator(t, ca, tokens)
	if err != nil {
		t.Fatal(err)
	}
	cert := ca.client(t, x509.ExtKeyUsageClientAuth, time.Hour, "ada", "staff")
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	for range 3 {
		response, ok, err := authn.AuthenticateRequest(r)
		if err != nil || !ok || response.User.GetName() != "ada" || !slices.Contains(response.User.GetGroups(), "staff") {
			t.Fatalf("got %v, %v, %v, want ada", response, ok, err)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { authn.AuthenticateRequest(r) }); allocs > 20 {
		t.Errorf("%v allocations to authenticate again, want no verification, which takes more", allocs)
	}
	cert.NotAfter = time.Now().Add(-time.Second) // its time is over while it is remembered
	if response, ok, err := authn.AuthenticateRequest(r); ok || err == nil {
		t.Errorf("got %v, %v, %v for an expired certificate, want an error", response, ok, err)
	}
}

// BenchmarkCertificate authenticates one client's requests.
func BenchmarkCertificate(b *testing.B) {
	ca := newAuthority(b)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	authn, err := auth.NewAuthenticator(pool, "")
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ca.client(b, x509.ExtKeyUsageClientAuth, time.Hour, "ada", "staff")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := authn.AuthenticateRequest(r); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
