package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"time"
)

// RenewAt is when a certificate is replaced: after two thirds of its life, or up to a tenth
// of its life earlier. How much earlier follows from the certificate, so that nodes do not
// all do it in one minute, and that everybody who looks computes the same time.
func RenewAt(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	hash := sha256.Sum256(cert.Raw)
	jitter := float64(binary.BigEndian.Uint32(hash[:])) / (1 << 32) * float64(life) / 10
	return cert.NotBefore.Add(life*2/3 - time.Duration(jitter)).Truncate(time.Second)
}

// Due says whether a certificate has to be replaced now. One that ends with its CA has no
// better successor.
func (c *Cluster) Due(cert *x509.Certificate) bool {
	return !c.now().Before(RenewAt(cert)) && cert.NotAfter.Before(c.CA.NotAfter)
}

// Issued says whether a certificate is one of this cluster's.
func (c *Cluster) Issued(cert *x509.Certificate) bool { return cert.CheckSignatureFrom(c.CA) == nil }

func (c *Cluster) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// RenewNode issues the certificate in dir again, for the same name and hosts. A running
// node takes it up at its next look.
func RenewNode(cluster *Cluster, dir string) (*Identity, error) {
	old, err := LoadNode(cluster, dir)
	if err != nil {
		return nil, err
	}
	leaf := old.Certificate().Leaf
	hosts := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return issueNode(cluster, dir, old.Name, hosts)
}

// LoadNode reads the certificate in dir, whatever its state.
func LoadNode(cluster *Cluster, dir string) (*Identity, error) {
	pair, err := readPair(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the node's certificate: %w", err)
	}
	identity, err := newIdentity(cluster.CA, "", pair)
	if err != nil {
		return nil, err
	}
	identity.Name = identity.Certificate().Leaf.Subject.CommonName
	return identity, nil
}
