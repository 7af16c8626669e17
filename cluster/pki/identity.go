package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	nodeCertFile = "node.crt"
	nodeKeyFile  = "node.key"
)

// Identity is what a node proves itself with, and what it trusts. Its certificate can be
// replaced while it is in use: connections that are open go on, new ones get the new one.
type Identity struct {
	Name string
	CA   *x509.Certificate

	certificate atomic.Pointer[tls.Certificate]
	pool        *x509.CertPool
}

// NodeIdentity loads the certificate of node name from dir (usually DATA/pki), and issues
// it from the cluster's CA if it is missing, due for renewal, of another CA, or does not
// cover exactly these hosts.
func NodeIdentity(cluster *Cluster, dir, name string, hosts []string) (*Identity, error) {
	pair, err := readPair(dir)
	if err == nil {
		if identity, err := newIdentity(cluster.CA, name, pair); err == nil && identity.current(cluster, hosts) {
			return identity, nil
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return issueNode(cluster, dir, name, hosts)
}

func issueNode(cluster *Cluster, dir, name string, hosts []string) (*Identity, error) {
	pair, err := cluster.IssueNode(name, hosts)
	if err != nil {
		return nil, err
	}
	if err := writePair(dir, pair); err != nil {
		return nil, err
	}
	return newIdentity(cluster.CA, name, pair)
}

// NewIdentity is the identity of node name with pair, trusting the CA in caPEM.
func NewIdentity(caPEM []byte, name string, pair Pair) (*Identity, error) {
	ca, err := decodeCert(caPEM)
	if err != nil {
		return nil, fmt.Errorf("the CA certificate cannot be read: %w", err)
	}
	return newIdentity(ca, name, pair)
}

func newIdentity(ca *x509.Certificate, name string, pair Pair) (*Identity, error) {
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("the certificate of node %s cannot be read: %w", name, err)
	}
	// The CA goes along for a node that joins: it knows no more of it than its hash.
	cert.Certificate = append(cert.Certificate[:1:1], ca.Raw)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	identity := &Identity{Name: name, CA: ca, pool: pool}
	identity.certificate.Store(&cert)
	return identity, nil
}

// current says whether the certificate is still the one that would be issued.
func (i *Identity) current(cluster *Cluster, hosts []string) bool {
	names, ips := subjectNames(i.Name, hosts)
	leaf := i.Certificate().Leaf
	return cluster.Issued(leaf) && !cluster.Due(leaf) &&
		slices.Equal(leaf.DNSNames, names) &&
		slices.EqualFunc(leaf.IPAddresses, ips, net.IP.Equal)
}

// Certificate is the one that new connections get.
func (i *Identity) Certificate() *tls.Certificate { return i.certificate.Load() }

// NotAfter is when the certificate ends, if it is not renewed before.
func (i *Identity) NotAfter() time.Time { return i.Certificate().Leaf.NotAfter }

// Replace has new connections get the certificate of other, which must be of the same node
// and CA. It says whether that is another one.
func (i *Identity) Replace(other *Identity) (bool, error) {
	if other.Name != i.Name || !other.CA.Equal(i.CA) {
		return false, fmt.Errorf("the certificate of node %s cannot be replaced by that of %s", i.Name, other.Name)
	}
	next := other.Certificate()
	old := i.certificate.Swap(next)
	return !old.Leaf.Equal(next.Leaf), nil
}

// GetCertificate is for the tls.Config of a server.
func (i *Identity) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return i.Certificate(), nil
}

// ClusterID names the cluster that this identity belongs to.
func (i *Identity) ClusterID() string { return clusterID(i.CA.Raw) }

// CAPEM is the CA certificate as it goes into a kubeconfig.
func (i *Identity) CAPEM() []byte { return encodeCert(i.CA.Raw) }

// Pool holds the cluster's CA alone.
func (i *Identity) Pool() *x509.CertPool { return i.pool }

// PeerServer is the TLS of a node's peer port: TLS 1.3, and only nodes of this cluster
// are let in. Protocols are the ALPN names it offers.
func (i *Identity) PeerServer(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS13,
		GetCertificate:   i.GetCertificate,
		ClientAuth:       tls.RequireAndVerifyClientCert,
		ClientCAs:        i.pool,
		NextProtos:       protocols,
		VerifyConnection: requireNode,
	}
}

// PeerClient is the TLS with which to dial the node called name: a server that cannot
// prove to be that node is refused, wherever it listens.
func (i *Identity) PeerClient(name, protocol string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*i.Certificate()},
		RootCAs:      i.pool,
		ServerName:   NodeDNSName(name),
		NextProtos:   []string{protocol},
	}
}

func requireNode(state tls.ConnectionState) error {
	_, err := NodeName(state)
	return err
}

// NodeName returns which node is at the other end of a verified connection.
func NodeName(state tls.ConnectionState) (string, error) {
	if len(state.PeerCertificates) == 0 {
		return "", errors.New("the peer presented no certificate")
	}
	for _, dns := range state.PeerCertificates[0].DNSNames {
		if name, ok := strings.CutSuffix(dns, "."+NodeDomain); ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("certificate of %q is not a node's", state.PeerCertificates[0].Subject.CommonName)
}

func readPair(dir string) (Pair, error) {
	cert, err := os.ReadFile(filepath.Join(dir, nodeCertFile))
	if err != nil {
		return Pair{}, err
	}
	key, err := os.ReadFile(filepath.Join(dir, nodeKeyFile))
	return Pair{CertPEM: cert, KeyPEM: key}, err
}

// writePair replaces key and certificate. A crash in between leaves a pair that does not
// match, which the next start reads as "issue it again".
func writePair(dir string, pair Pair) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot store the node certificate: %w", err)
	}
	return errors.Join(
		writeFile(filepath.Join(dir, nodeKeyFile), pair.KeyPEM, 0o600),
		writeFile(filepath.Join(dir, nodeCertFile), pair.CertPEM, 0o644),
		syncDir(dir),
	)
}

// LoadIdentity loads what NodeIdentity has left in dir, and issues nothing.
func LoadIdentity(cluster *Cluster, dir, name string) (*Identity, error) {
	pair, err := readPair(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot load the certificate of node %s: %w", name, err)
	}
	return newIdentity(cluster.CA, name, pair)
}
