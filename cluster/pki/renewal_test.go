package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRenewAt: the time is between 17/30 and 2/3 of the life, the same for everybody who
// looks, and not the same for all certificates.
func TestRenewAt(t *testing.T) {
	c := mustCluster(t)
	seen := map[time.Duration]bool{}
	for range 20 {
		pair, err := c.IssueClient("a", nil, 300*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := decodeCert(pair.CertPEM)
		if err != nil {
			t.Fatal(err)
		}
		copied, err := x509.ParseCertificate(cert.Raw)
		if err != nil {
			t.Fatal(err)
		}
		age := RenewAt(cert).Sub(cert.NotBefore)
		if age < 169*time.Hour || age > 202*time.Hour || !RenewAt(copied).Equal(RenewAt(cert)) {
			t.Errorf("renewed at the age of %s", age)
		}
		seen[age.Truncate(time.Minute)] = true
	}
	if len(seen) < 5 {
		t.Errorf("20 certificates are renewed at %d different ages", len(seen))
	}
}

// TestClockBehind: who is an hour behind takes certificates of this minute, if they are to live
// for a day or more; no certificate is due when it is new.
func TestClockBehind(t *testing.T) {
	c := mustCluster(t)
	for _, life := range []time.Duration{time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		pair, err := c.IssueClient("a", nil, life)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := decodeCert(pair.CertPEM)
		if err != nil {
			t.Fatal(err)
		}
		if behind := time.Now().Add(-time.Hour); life > time.Hour && behind.Before(cert.NotBefore) {
			t.Errorf("a life of %s begins at %s, and an hour ago was %s", life, cert.NotBefore, behind)
		}
		if c.Due(cert) {
			t.Errorf("a life of %s: renewal is due at %s", life, RenewAt(cert))
		}
	}
	if behind := time.Now().Add(-time.Hour); behind.Before(c.CA.NotBefore) {
		t.Errorf("the CA begins at %s", c.CA.NotBefore)
	}
}

// TestIdentityIsRenewed moves the clock through a certificate's life.
func TestIdentityIsRenewed(t *testing.T) {
	c, dir := mustCluster(t), t.TempDir()
	start := time.Now()
	now := start
	c.Now = func() time.Time { return now }
	first, err := NodeIdentity(c, dir, "n1", []string{"vm1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct {
		days    int
		renewed bool
	}{{1, false}, {200, false}, {250, true}} {
		now = start.AddDate(0, 0, look.days)
		next, err := NodeIdentity(c, dir, "n1", []string{"vm1"})
		if err != nil {
			t.Fatal(err)
		}
		renewed, err := first.Replace(next)
		if err != nil || renewed != look.renewed {
			t.Errorf("after %d days: renewed is %v, want %v: %v", look.days, renewed, look.renewed, err)
		}
	}
	if want := now.Add(nodeLife).Truncate(time.Second); !first.NotAfter().Equal(want) {
		t.Errorf("it ends at %s, want %s", first.NotAfter(), want)
	}
	byHand, err := RenewNode(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	old, next := first.Certificate().Leaf, byHand.Certificate().Leaf
	if old.Equal(next) || byHand.Name != "n1" || !slices.Equal(old.DNSNames, next.DNSNames) || !slices.EqualFunc(old.IPAddresses, next.IPAddresses, net.IP.Equal) {
		t.Errorf("renewed by hand: %s for %v %v, was for %v %v", byHand.Name, next.DNSNames, next.IPAddresses, old.DNSNames, old.IPAddresses)
	}
	if other, err := NodeIdentity(c, t.TempDir(), "n2", nil); err != nil {
		t.Error(err)
	} else if _, err := first.Replace(other); err == nil {
		t.Error("the certificate of another node was taken")
	}
}

// TestCAEnds: a certificate that ends with its CA is not issued again and again.
func TestCAEnds(t *testing.T) {
	c, dir := mustCluster(t), t.TempDir()
	now := c.CA.NotAfter.Add(-48 * time.Hour)
	c.Now = func() time.Time { return now }
	first, err := NodeIdentity(c, dir, "n1", nil)
	if err != nil || !first.NotAfter().Equal(c.CA.NotAfter) {
		t.Fatalf("it ends at %s, %v", first.NotAfter(), err)
	}
	now = now.Add(47 * time.Hour)
	again, err := NodeIdentity(c, dir, "n1", nil)
	if err != nil || !again.Certificate().Leaf.Equal(first.Certificate().Leaf) {
		t.Errorf("it was issued again: %v", err)
	}
}

// TestPeerPortIsRenewed: a connection that is open goes on with the old certificate, new
// ones on both sides get the new one.
func TestPeerPortIsRenewed(t *testing.T) {
	c := mustCluster(t)
	serverDir, clientDir := t.TempDir(), t.TempDir()
	identity := func(dir, name string) *Identity {
		id, err := NodeIdentity(c, dir, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	server, client := identity(serverDir, "n1"), identity(clientDir, "n2")
	seen := make(chan *x509.Certificate, 2)
	listener := echo(t, server.PeerServer("p"), seen)
	dial := func() (conn *tls.Conn, shown *x509.Certificate) {
		conn, err := tls.Dial("tcp", listener, client.PeerClient("n1", "p"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn, conn.ConnectionState().PeerCertificates[0]
	}
	oldConn, oldServer := dial()
	say(t, oldConn)
	oldClient := <-seen
	for _, renew := range []struct {
		id  *Identity
		dir string
	}{{server, serverDir}, {client, clientDir}} {
		next, err := RenewNode(c, renew.dir)
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := renew.id.Replace(next); err != nil || !changed {
			t.Fatalf("%v %v", changed, err)
		}
	}
	say(t, oldConn)
	newConn, newServer := dial()
	say(t, newConn)
	if newClient := <-seen; newServer.Equal(oldServer) || newClient.Equal(oldClient) {
		t.Error("a new connection has an old certificate")
	}
}

// echo serves what it is sent and tells who sends it.
func echo(t *testing.T, config *tls.Config, seen chan<- *x509.Certificate) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if conn.(*tls.Conn).Handshake() == nil {
					seen <- conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
					io.Copy(conn, conn)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func say(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	answer := make([]byte, 2)
	if _, err := conn.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "hi" {
		t.Fatalf("answer %q, %v", answer, err)
	}
}

// TestHosts: a node's certificate is for no other node, and for nothing that is no host.
func TestHosts(t *testing.T) {
	c := mustCluster(t)
	for host, ok := range map[string]bool{
		"10.0.0.1": true, "fd00::1": true, "vm1": true, "VM_1.example.": true, NodeDNSName("n1"): true,
		NodeDNSName("n2"): false, "N2." + NodeDomain: false, "a b": false, "*": false, "-a": false, strings.Repeat("a", 254): false,
	} {
		if _, err := c.IssueNode("n1", []string{host}); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestSignClient signs requests as `kontiki kubeconfig` sends them, and refuses others.
func TestSignClient(t *testing.T) {
	c := mustCluster(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(template x509.CertificateRequest) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	ada := pkix.Name{CommonName: "ada", Organization: []string{"a", "b"}}
	signed, err := c.SignClient(request(x509.CertificateRequest{Subject: ada, DNSNames: []string{NodeDNSName("n1")}}), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := decodeCert(signed)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Issued(cert) || cert.Subject.CommonName != "ada" || len(cert.Subject.Organization) != 2 || len(cert.DNSNames) > 0 ||
		!slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		t.Errorf("signed %s for %v %v", cert.Subject, cert.DNSNames, cert.ExtKeyUsage)
	}
	damaged := request(x509.CertificateRequest{Subject: ada})
	block, _ := pem.Decode(damaged)
	block.Bytes[len(block.Bytes)-1] ^= 1
	for name, try := range map[string]struct {
		request []byte
		life    time.Duration
	}{
		"no PEM":           {[]byte("x"), time.Hour},
		"another kind":     {c.CAPEM(), time.Hour},
		"a bad signature":  {pem.EncodeToMemory(block), time.Hour},
		"no user":          {request(x509.CertificateRequest{}), time.Hour},
		"no life":          {request(x509.CertificateRequest{Subject: ada}), 0},
		"a life too long":  {request(x509.CertificateRequest{Subject: ada}), authorityLife + 1},
		"a life backwards": {request(x509.CertificateRequest{Subject: ada}), -1},
	} {
		if _, err := c.SignClient(try.request, try.life); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}
