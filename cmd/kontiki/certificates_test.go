package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"

	"kontiki/cluster/pki"
)

// past is how old the certificates of these tests are when their time comes:
// more than two thirds of their life, and not yet all of it.
const past = 270 * 24 * time.Hour

// TestCertificatesRenewThemselves: in a cluster whose certificates were issued
// long ago the clock comes to today. Connections that are open go on; new ones,
// to the API and to the peer port, meet new certificates, and so does who reads
// the kubeconfig.
func TestCertificatesRenewThemselves(t *testing.T) {
	today := time.Now()
	clock := clocktesting.NewFakeClock(today.Add(-past))
	c := newCluster(t, 3, func(_ int, cfg *Config) { cfg.Clock = clock })
	leader := c.leader()
	term := c.nodes[leader].Node.Status().Term
	limit := today.AddDate(0, 6, 0) // new certificates end later, old ones before
	var open []*tls.Conn
	for i := range c.nodes {
		conn := c.dialAPI(i)
		if cert := conn.ConnectionState().PeerCertificates[0]; !cert.NotAfter.Before(limit) {
			t.Fatalf("the certificate is as good as new: it ends %s", cert.NotAfter)
		}
		open = append(open, conn)
	}
	clock.SetTime(today)
	for i := range c.nodes {
		until(t, func() error { return c.checkRenewed(i, limit) })
		askOn(t, open[i])
		if code := c.http(i).get("/api/v1/namespaces").code; code != http.StatusOK {
			t.Errorf("the new kubeconfig is answered %d", code)
		}
	}
	if now := c.nodes[c.leader()].Node.Status().Term; now != term {
		t.Errorf("there was an election: term %d, then %d", term, now)
	}
	c.waitReady()
	c.checkEqual()
}

// checkRenewed looks at what a new connection to node i gets.
func (c *testCluster) checkRenewed(i int, limit time.Time) error {
	for what, cert := range map[string]*x509.Certificate{
		"API": c.dialAPI(i).ConnectionState().PeerCertificates[0], "peer": c.dialPeer(i), "kubeconfig": adminOf(c.t, c.nodes[i].Kubeconfig),
	} {
		if cert.NotAfter.Before(limit) {
			return fmt.Errorf("node %d, %s: the certificate still ends %s", i, what, cert.NotAfter)
		}
	}
	return nil
}

// dialAPI opens a connection to the API of node i, checked against the CA.
func (c *testCluster) dialAPI(i int) *tls.Conn {
	c.t.Helper()
	root, err := pki.Load(c.nodes[i].cfg.PKIDir)
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(root.CA)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.nodes[i].URL, "https://"), &tls.Config{RootCAs: pool})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// dialPeer returns what the peer port of node i presents to another node.
func (c *testCluster) dialPeer(i int) *x509.Certificate {
	c.t.Helper()
	root, err := pki.Load(c.nodes[i].cfg.PKIDir)
	if err != nil {
		c.t.Fatal(err)
	}
	other, err := pki.NodeIdentity(root, c.t.TempDir(), "other", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", c.nodes[i].Node.PeerAddr(), other.PeerClient(c.nodes[i].cfg.Name, "kontiki-peer/2"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

func adminOf(t testing.TB, file string) *x509.Certificate {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := adminCertificate(config)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// askOn asks through a connection that is open.
func askOn(t testing.TB, conn *tls.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("the connection that was open: %v", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the connection that was open: answer %d", answer.StatusCode)
	}
}

// keptCertificates is what a node has, without the node.
func keptCertificates(t *testing.T, clock *clocktesting.FakeClock, log hclog.Logger) *certificates {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Name, cfg.DataDir, cfg.Clock = "n1", t.TempDir(), clock
	if err := cfg.Complete(); err != nil {
		t.Fatal(err)
	}
	root, err := pki.EnsureCluster(cfg.PKIDir)
	if err != nil {
		t.Fatal(err)
	}
	root.Now = clock.Now
	hosts, err := certificateHosts(cfg)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := pki.NodeIdentity(root, identityDir(cfg.DataDir), cfg.Name, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return &certificates{
		cfg: cfg, root: root, identity: identity, kubeconfig: filepath.Join(cfg.DataDir, adminFile), address: "localhost:6443", log: log,
	}
}

// TestCertificateWarnings: when renewal does not work the log says so, and from
// thirty days before the end on also what will happen, once a day. Once it works
// again, nothing is lost.
func TestCertificateWarnings(t *testing.T) {
	start := time.Now()
	clock := clocktesting.NewFakeClock(start)
	var log lockedBuffer
	c := keptCertificates(t, clock, hclog.New(&hclog.LoggerOptions{Output: &log}))
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	dir := identityDir(c.cfg.DataDir)
	if err := errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	at := func(days int, failures, warnings int) {
		t.Helper()
		clock.SetTime(start.AddDate(0, 0, days))
		until(t, func() error {
			if got := strings.Count(log.String(), "cannot renew certificates"); got < failures {
				return fmt.Errorf("day %d: %d failures are in the log, want %d: %s", days, got, failures, log.String())
			}
			if got := strings.Count(log.String(), "a certificate expires soon: what=node"); got != warnings {
				return fmt.Errorf("day %d: %d warnings are in the log, want %d: %s", days, got, warnings, log.String())
			}
			return nil
		})
	}
	at(300, 1, 0)
	at(336, 2, 1)
	clock.Step(certificateCheck)
	at(337, 3, 2)
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}
	clock.Step(certificateCheck)
	until(t, func() error {
		if left := c.identity.NotAfter().Sub(clock.Now()); left < 300*24*time.Hour {
			return fmt.Errorf("the certificate has %s left", left)
		}
		return nil
	})
}

// TestRenewedByAnother: what another process writes is taken up.
func TestRenewedByAnother(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	c := keptCertificates(t, clock, hclog.NewNullLogger())
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	before := c.identity.Certificate().Leaf
	var out bytes.Buffer
	if err := runCommand(t, &out, "cert", "renew", "--data-dir", c.cfg.DataDir); err != nil || out.String() != "node/n1 certificates renewed\n" {
		t.Fatalf("%q, %v", out.String(), err)
	}
	clock.Step(certificateCheck)
	until(t, func() error {
		if c.identity.Certificate().Leaf.Equal(before) {
			return errors.New("the old certificate is still in use")
		}
		return nil
	})
}

// command runs a command of the command line within this process.
func runCommand(t testing.TB, out *bytes.Buffer, args ...string) error {
	t.Helper()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	return root.ExecuteContext(t.Context())
}
