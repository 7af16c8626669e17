package pki

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTokens tries whole, damaged, foreign and old tokens.
func TestTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ours, theirs := mustCluster(t), mustCluster(t)
	ours.Now = func() time.Time { return now }
	theirs.Now = ours.Now
	token, expires := mustToken(t, ours)
	foreign, _ := mustToken(t, theirs)
	if !expires.Equal(now.Add(time.Hour)) || strings.ContainsAny(token, " \t\n'\"$\\") {
		t.Errorf("token %q until %s", token, expires)
	}
	parts := strings.Split(token, ".")
	mixed := parts[0] + "." + strings.Join(strings.Split(foreign, ".")[1:], ".")
	later := parts[0] + ".2" + parts[1][1:] + "." + parts[2]
	damaged := token[:len(token)-1] + "0"
	if damaged == token {
		damaged = token[:len(token)-1] + "1"
	}
	for name, try := range map[string]struct {
		text string
		at   time.Duration
		want error
	}{
		"good":                   {token, 0, nil},
		"with a line's end":      {token + "\n", 0, nil},
		"good to the end":        {token, time.Hour - time.Nanosecond, nil},
		"too late":               {token, time.Hour, ErrTokenExpired},
		"of another cluster":     {foreign, 0, ErrTokenForeign},
		"signed by another":      {mixed, 0, ErrTokenForged},
		"with a later end":       {later, 0, ErrTokenForged},
		"another signature":      {damaged, 0, ErrTokenForged},
		"cut off":                {token[:len(token)-2], 0, ErrTokenMalformed},
		"a hash alone":           {parts[0], 0, ErrTokenMalformed},
		"nothing":                {"", 0, ErrTokenMalformed},
		"a word":                 {"guess", 0, ErrTokenMalformed},
		"with an end of no time": {parts[0] + ".soon-00." + parts[2], 0, ErrTokenMalformed},
	} {
		ours.Now = func() time.Time { return now.Add(try.at) }
		if err := ours.CheckToken(try.text); !errors.Is(err, try.want) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %v", name, err, try.want)
		}
	}
	for _, life := range []time.Duration{0, -time.Hour, MaxTokenLife + 1} {
		if _, _, err := ours.NewToken(life); err == nil {
			t.Errorf("a token with a life of %s was made", life)
		}
	}
}

func mustToken(t *testing.T, c *Cluster) (string, time.Time) {
	t.Helper()
	text, expires, err := c.NewToken(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return text, expires
}

func parsed(t *testing.T, c *Cluster) Token {
	t.Helper()
	text, _ := mustToken(t, c)
	token, err := ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestTokenTLS: a node that knows the CA's hash alone talks to nodes of that cluster only.
func TestTokenTLS(t *testing.T) {
	ours, theirs := mustCluster(t), mustCluster(t)
	server := func(root, shown *Cluster) *tls.Config {
		id, err := NodeIdentity(root, t.TempDir(), "n1", nil)
		if err != nil {
			t.Fatal(err)
		}
		cert := *id.Certificate()
		cert.Certificate = [][]byte{cert.Certificate[0], shown.CA.Raw}
		return &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	admin, err := ours.IssueClient("admin", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewIdentity(ours.CAPEM(), "admin", admin)
	if err != nil {
		t.Fatal(err)
	}
	token := parsed(t, ours)
	for name, try := range map[string]struct {
		server *tls.Config
		ok     bool
	}{
		"a node of the cluster":             {server(ours, ours), true},
		"a node of another":                 {server(theirs, theirs), false},
		"another's node that shows our CA":  {server(theirs, ours), false},
		"our node that shows another CA":    {server(ours, theirs), false},
		"an administrator who plays server": {&tls.Config{Certificates: []tls.Certificate{*client.Certificate()}}, false},
	} {
		if err := handshake(try.server, token.TLS()); (err == nil) != try.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAdopt: what a node gets is written whole or not at all, and never over something else.
func TestAdopt(t *testing.T) {
	ours, theirs := mustCluster(t), mustCluster(t)
	good, err := ours.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	other, err := theirs.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	token := parsed(t, ours)
	for name, bundle := range map[string]Bundle{
		"nothing":            {},
		"another cluster":    other,
		"no key":             {CACert: good.CACert, GossipKey: good.GossipKey},
		"another's key":      {CACert: good.CACert, CAKey: other.CAKey, GossipKey: good.GossipKey},
		"a short gossip key": {CACert: good.CACert, CAKey: good.CAKey, GossipKey: good.GossipKey[1:]},
	} {
		parent := t.TempDir()
		if _, err := Adopt(filepath.Join(parent, "cluster"), bundle, token); err == nil {
			t.Errorf("%s: adopted", name)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	for range 2 {
		if c, err := Adopt(dir, good, token); err != nil || c.ID() != ours.ID() {
			t.Fatalf("adopted %v, %v", c, err)
		}
	}
	if _, err := Adopt(dir, other, parsed(t, theirs)); !errors.Is(err, ErrTokenForeign) {
		t.Errorf("another cluster was adopted over it: %v", err)
	}
	adopted, err := Load(dir)
	if err != nil || adopted.ID() != ours.ID() {
		t.Fatalf("%v", err)
	}
	text, _ := mustToken(t, adopted)
	if err := ours.CheckToken(text); err != nil {
		t.Errorf("a token of the node that joined: %v", err)
	}
}

func FuzzToken(f *testing.F) {
	c, err := EnsureCluster(filepath.Join(f.TempDir(), "cluster"))
	if err != nil {
		f.Fatal(err)
	}
	good, _, err := c.NewToken(time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{good, good[1:], "a.b-c.d", "..", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Hexadecimal digits may be capitals.
		if err := c.CheckToken(text); err == nil && !strings.EqualFold(strings.TrimSpace(text), good) || err != nil && text == good {
			t.Errorf("%q: %v", text, err)
		}
	})
}
