package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustCluster(t *testing.T) *Cluster {
	t.Helper()
	c, err := EnsureCluster(filepath.Join(t.TempDir(), "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEnsureClusterOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	ids, keys := make([]string, 8), make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			c, err := EnsureCluster(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i], keys[i] = c.ID(), c.GossipKey
		})
	}
	wg.Wait()
	for i := range ids {
		if ids[i] != ids[0] || !bytes.Equal(keys[i], keys[0]) || len(keys[i]) != 32 {
			t.Errorf("process %d has another cluster", i)
		}
	}
	left, _ := filepath.Glob(dir + ".tmp-*")
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	for _, name := range []string{caKeyFile, gossipFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestEmptyDirectoryIsNoCluster(t *testing.T) {
	if _, err := EnsureCluster(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no cluster: %v", err)
	}
	for _, test := range []struct {
		name string
		harm func(dir string) error
	}{
		{"damaged certificate", func(dir string) error { return os.WriteFile(filepath.Join(dir, caCertFile), []byte("x"), 0o600) }},
		{"damaged key", func(dir string) error { return os.WriteFile(filepath.Join(dir, caKeyFile), []byte("x"), 0o600) }},
		{"damaged gossip key", func(dir string) error { return os.WriteFile(filepath.Join(dir, gossipFile), []byte("x"), 0o600) }},
		{"missing key", func(dir string) error { return os.Remove(filepath.Join(dir, caKeyFile)) }},
		{"missing gossip key", func(dir string) error { return os.Remove(filepath.Join(dir, gossipFile)) }},
		{"another's key", func(dir string) error {
			other := filepath.Join(filepath.Dir(dir), "other")
			if _, err := EnsureCluster(other); err != nil {
				return err
			}
			return os.Rename(filepath.Join(other, caKeyFile), filepath.Join(dir, caKeyFile))
		}},
	} {
		dir := filepath.Join(t.TempDir(), "cluster")
		if _, err := EnsureCluster(dir); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(dir, caCertFile))
		if err := test.harm(dir); err != nil {
			t.Fatal(err)
		}
		_, err := EnsureCluster(dir)
		if err == nil || strings.Contains(strings.TrimSpace(err.Error()), "\n") {
			t.Errorf("%s: %v", test.name, err)
		}
		after, _ := os.ReadFile(filepath.Join(dir, caCertFile))
		if test.name != "damaged certificate" && !bytes.Equal(before, after) {
			t.Errorf("%s: the cluster was made anew", test.name)
		}
	}
}

func TestNodeIdentityIsKeptAndRenewed(t *testing.T) {
	c, dir := mustCluster(t), t.TempDir()
	issue := func(hosts ...string) *Identity {
		t.Helper()
		id, err := NodeIdentity(c, dir, "n1", hosts)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := issue("10.0.0.1", "vm1")
	same := issue("vm1", "10.0.0.1")
	if !bytes.Equal(first.Certificate().Certificate[0], same.Certificate().Certificate[0]) {
		t.Error("the certificate was issued again for the same addresses")
	}
	moved := issue("10.0.0.2")
	if bytes.Equal(first.Certificate().Certificate[0], moved.Certificate().Certificate[0]) {
		t.Error("the certificate was kept for another address")
	}
	for _, host := range []string{"10.0.0.2", "127.0.0.1", "::1", "localhost", "n1", NodeDNSName("n1")} {
		if err := moved.Certificate().Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if info, _ := os.Stat(filepath.Join(dir, nodeKeyFile)); info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v", info.Mode())
	}
	if _, err := NodeIdentity(c, dir, "No Name", nil); err == nil {
		t.Error("a bad name was accepted")
	}
}

func TestClientCertificate(t *testing.T) {
	c := mustCluster(t)
	pair, err := c.IssueClient("admin", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := decodeCert(pair.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.CA)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || cert.Subject.CommonName != "admin" || cert.Subject.Organization[0] != "system:masters" {
		t.Errorf("%v, %v", cert.Subject, err)
	}
}

// TestPeers: who may talk to whom.
func TestPeers(t *testing.T) {
	c, other := mustCluster(t), mustCluster(t)
	identity := func(c *Cluster, name string) *Identity {
		id, err := NodeIdentity(c, t.TempDir(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	n1, n2, foreign := identity(c, "n1"), identity(c, "n2"), identity(other, "n2")
	pair, err := c.IssueClient("admin", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := NewIdentity(c.CAPEM(), "admin", pair)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name           string
		server, client *tls.Config
		ok             bool
	}{
		{"two nodes", n1.PeerServer("p"), n2.PeerClient("n1", "p"), true},
		{"not the node that was dialed", n1.PeerServer("p"), n2.PeerClient("n3", "p"), false},
		{"a client of another cluster", n1.PeerServer("p"), foreign.PeerClient("n1", "p"), false},
		{"a server of another cluster", foreign.PeerServer("p"), n1.PeerClient("n2", "p"), false},
		{"a client that is no node", n1.PeerServer("p"), admin.PeerClient("n1", "p"), false},
		{"a server that is no node", admin.PeerServer("p"), n1.PeerClient("admin", "p"), false},
		{"another protocol", n1.PeerServer("p"), n2.PeerClient("n1", "q"), false},
	} {
		if err := handshake(test.server, test.client); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// handshake returns the server's verdict; what the client thinks, the server hears of.
func handshake(serverConfig, clientConfig *tls.Config) error {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig)
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		conn, err := tls.Dial("tcp", listener.Addr().String(), clientConfig)
		if err == nil {
			conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	return conn.(*tls.Conn).Handshake()
}
