package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/cluster"
	"kontiki/cluster/pki"
)

// TestJoin lets a node in that has nothing but a token, through all filters.
func TestJoin(t *testing.T) {
	h := newHarness(t)
	var token JoinToken
	decode(t, h.must(http.MethodPost, TokensPath, `{"ttl":"1h"}`), &token)
	if left := time.Until(token.Expires); left < 59*time.Minute || left > time.Hour {
		t.Errorf("the token is good for %s", left)
	}
	var response JoinResponse
	decode(t, h.join(token.Token, "n2", "192.0.2.1:7301"), &response)
	if len(response.Peers) != 1 || len(response.Cluster.CAKey) == 0 || string(response.Cluster.CACert) != string(h.Root.CAPEM()) {
		t.Errorf("it got %+v", response)
	}
}

// join asks with no credentials but the token.
func (h *harness) join(token, name, peerAddr string) answer {
	h.t.Helper()
	body, err := json.Marshal(JoinRequest{Token: token, Name: name, PeerAddr: peerAddr, GossipAddr: peerAddr})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.serve(httptest.NewRequest(http.MethodPost, JoinPath, strings.NewReader(string(body))))
}

func decode(t *testing.T, a answer, value any) {
	t.Helper()
	if a.Code != http.StatusOK {
		t.Fatalf("answer %d: %s", a.Code, a.Body)
	}
	if err := json.Unmarshal(a.Body.Bytes(), value); err != nil {
		t.Fatal(err)
	}
}

// TestJoinRefusals: each has its code and its reason, and none lets out a key.
func TestJoinRefusals(t *testing.T) {
	h := newHarness(t)
	good, _, err := h.Root.NewToken(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(method, body string) answer {
		return h.serve(httptest.NewRequest(method, JoinPath, strings.NewReader(body)))
	}
	for name, try := range map[string]struct {
		got  answer
		code int
		want string
	}{
		"no token":        {h.join("", "n2", "127.0.0.1:1"), http.StatusUnauthorized, "not a join token"},
		"a forged one":    {h.join(good[:len(good)-4]+"0000", "n2", "127.0.0.1:1"), http.StatusUnauthorized, "wrong signature"},
		"a bad name":      {h.join(good, "No Name", "127.0.0.1:1"), http.StatusBadRequest, "must be lower-case"},
		"a bad address":   {h.join(good, "n2", "here"), http.StatusBadRequest, "is not host:port"},
		"a loopback one":  {h.join(good, "n2", "localhost:1"), http.StatusConflict, "give --"}, // httptest's requests are from 192.0.2.1
		"no JSON":         {plain(http.MethodPost, "x"), http.StatusBadRequest, "not the JSON"},
		"no end":          {plain(http.MethodPost, `{"token":"`+strings.Repeat("a", maxOwnBody)), http.StatusBadRequest, "not the JSON"},
		"another method":  {plain(http.MethodGet, ""), http.StatusForbidden, "cannot get path"},
		"tokens, no user": {h.serve(httptest.NewRequest(http.MethodPost, TokensPath, strings.NewReader(`{"ttl":"1h"}`))), http.StatusUnauthorized, "Unauthorized"},
		"a life too long": {h.do(http.MethodPost, TokensPath, `{"ttl":"10000h"}`), http.StatusBadRequest, "720h"},
		"a life of no h":  {h.do(http.MethodPost, TokensPath, `{"ttl":"soon"}`), http.StatusBadRequest, "not the JSON"},
		"not a request":   {h.do(http.MethodPost, ClientCertificatesPath, `{"request":"x","ttl":"1h"}`), http.StatusBadRequest, "not PEM"},
	} {
		if try.got.Code != try.code || !strings.Contains(try.got.Body.String(), try.want) || strings.Contains(try.got.Body.String(), "caKey") {
			t.Errorf("%s: answer %d %s, want %d and %q", name, try.got.Code, try.got.Body, try.code, try.want)
		}
	}
}

// TestJoiners: who may come depends on who is there and on where both are.
func TestJoiners(t *testing.T) {
	members := []cluster.Member{
		{Name: "self", Alive: true, Role: cluster.RoleVoter, PeerAddr: "10.0.0.1:7301"},
		{Name: "dead", Role: cluster.RoleVoter, PeerAddr: "10.0.0.2:7301"},
		{Name: "reader", Role: cluster.RoleNonVoter, PeerAddr: "10.0.0.3:7301"},
		{Name: "founder", Role: cluster.RoleNone, PeerAddr: "10.0.0.4:7301"},
	}
	local := []cluster.Member{{Name: "self", Alive: true, PeerAddr: "127.0.0.1:43021"}}
	for name, try := range map[string]struct {
		members            []cluster.Member
		name, from, listen string
		want               string // none: let in
	}{
		"a new node":               {members, "new", "10.0.0.9:5", "10.0.0.9:7301", ""},
		"a name in use":            {members, "self", "10.0.0.9:5", "10.0.0.9:7301", "is running at 10.0.0.1:7301"},
		"a voter without its disk": {members, "dead", "10.0.0.2:5", "10.0.0.2:7301", "kontiki members remove dead"},
		"a reader without one":     {members, "reader", "10.0.0.3:5", "10.0.0.3:7301", ""},
		"a founder without one":    {members, "founder", "10.0.0.4:5", "10.0.0.4:7301", ""},
		"one that listens to none": {members, "new", "10.0.0.9:5", "127.0.0.1:7301", "is loopback, where other nodes cannot reach it"},
		"to one that does":         {local, "new", "10.0.0.9:5", "10.0.0.9:7301", "node self listens for other nodes on 127.0.0.1:43021 only"},
		"both on one machine":      {local, "new", "127.0.0.1:5", "127.0.0.1:7301", ""},
	} {
		s := &Server{Config: Config{Name: "self"}}
		r := httptest.NewRequest(http.MethodPost, JoinPath, nil)
		r.RemoteAddr = try.from
		err := s.checkJoiner(r, JoinRequest{Name: try.name, PeerAddr: try.listen, GossipAddr: try.listen}, try.members)
		if (err == nil) != (try.want == "") || err != nil && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), try.want)) {
			t.Errorf("%s: %v, want %q", name, err, try.want)
		}
	}
}

// TestCertificatesEndpoint shows and renews what the node keeps.
func TestCertificatesEndpoint(t *testing.T) {
	h := newHarness(t)
	var before, after NodeCertificates
	decode(t, h.must(http.MethodGet, CertificatesPath, ""), &before)
	decode(t, h.must(http.MethodPost, CertificatesPath, ""), &after)
	if before.Node != "test" || len(before.Certificates) != 1 || !after.Certificates[0].NotAfter.After(before.Certificates[0].NotAfter) {
		t.Errorf("%+v, renewed %+v", before, after)
	}
}

// oneCertificate ends a day later each time that it is renewed.
type oneCertificate struct{ days int }

func (c *oneCertificate) Renew() error { c.days++; return nil }
func (c *oneCertificate) Status() ([]Certificate, error) {
	return []Certificate{{What: "node", NotAfter: time.Unix(0, 0).AddDate(0, 0, c.days)}}, nil
}

func mustRoot(t testing.TB) *pki.Cluster {
	t.Helper()
	root, err := pki.EnsureCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}
