package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// NodeDomain is the DNS suffix that makes a certificate a node's. Peers ask for
	// "<node name>.<NodeDomain>", whatever address they dial.
	NodeDomain = "node.kontiki.internal"

	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 365 * 24 * time.Hour

	// A twelfth of its life, within these bounds, a certificate is back-dated by. So a machine
	// whose clock is an hour behind takes those of a cluster that is founded this minute, and
	// the time to renew a short one, two thirds of its life, is still to come.
	leastSkew, mostSkew = 5 * time.Minute, 2 * time.Hour
)

var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// hostName is looser than nodeName: what the system calls itself may have capitals and underscores.
var hostName = regexp.MustCompile(`^[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?$`)

// ValidateName says whether name can be a node's: it becomes part of a DNS name.
func ValidateName(name string) error {
	if len(name) > 128 || !nodeName.MatchString(name) {
		return fmt.Errorf("node name %q must be lower-case letters, digits, '-' and '.', at most 128", name)
	}
	return nil
}

// validateHosts refuses what is neither an address nor a name, and the name by which peers
// would take the node for another.
func validateHosts(node string, hosts []string) error {
	for _, host := range hosts {
		lower := strings.ToLower(host)
		switch {
		case host == "" || net.ParseIP(host) != nil:
		case len(host) > 253 || !hostName.MatchString(lower):
			return fmt.Errorf("%q is neither an IP address nor a host name", host)
		case strings.HasSuffix(lower, "."+NodeDomain) && lower != NodeDNSName(node):
			return fmt.Errorf("host %s is the name of another node", host)
		}
	}
	return nil
}

// NodeDNSName is the name by which peers verify the node called name.
func NodeDNSName(name string) string { return name + "." + NodeDomain }

// Pair is a certificate and its key, PEM-encoded.
type Pair struct {
	CertPEM, KeyPEM []byte
}

// IssueNode makes the certificate of node name. Hosts are the names and addresses under
// which clients reach it; localhost is always among them.
func (c *Cluster) IssueNode(name string, hosts []string) (Pair, error) {
	if err := ValidateName(name); err != nil {
		return Pair{}, err
	}
	if err := validateHosts(name, hosts); err != nil {
		return Pair{}, err
	}
	template := newTemplate(pkix.Name{CommonName: name, Organization: []string{"kontiki:nodes"}}, c.now(), nodeLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames, template.IPAddresses = subjectNames(name, hosts)
	return c.issue(template)
}

// IssueClient makes a client certificate: user is its common name, groups its organizations.
func (c *Cluster) IssueClient(user string, groups []string, life time.Duration) (Pair, error) {
	return c.issue(c.clientTemplate(pkix.Name{CommonName: user, Organization: groups}, life))
}

// SignClient is IssueClient for whoever keeps the key: subject and key are the request's,
// PEM-encoded, and nothing else of it counts. It returns the certificate, PEM-encoded.
func (c *Cluster) SignClient(requestPEM []byte, life time.Duration) ([]byte, error) {
	block, _ := pem.Decode(requestPEM)
	if block == nil {
		return nil, errors.New("the certificate request is not PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate request cannot be read: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the certificate request is not signed with its own key: %w", err)
	}
	subject := pkix.Name{CommonName: request.Subject.CommonName, Organization: request.Subject.Organization}
	if subject.CommonName == "" {
		return nil, errors.New("the certificate request names no user: its common name is empty")
	}
	if life <= 0 || life > authorityLife {
		return nil, fmt.Errorf("a certificate's life of %s is not from 1s to %s", life, authorityLife)
	}
	der, err := c.sign(c.clientTemplate(subject, life), request.PublicKey)
	return encodeCert(der), err
}

func (c *Cluster) clientTemplate(subject pkix.Name, life time.Duration) *x509.Certificate {
	template := newTemplate(subject, c.now(), life)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return template
}

func (c *Cluster) issue(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := c.sign(template, &key.PublicKey)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	return Pair{CertPEM: encodeCert(der), KeyPEM: keyPEM}, err
}

func (c *Cluster) sign(template *x509.Certificate, key any) ([]byte, error) {
	if template.NotAfter.After(c.CA.NotAfter) {
		template.NotAfter = c.CA.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.CA, key, c.key)
	if err != nil {
		return nil, fmt.Errorf("cannot issue a certificate for %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

func newAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := newTemplate(pkix.Name{CommonName: "kontiki-ca"}, time.Now(), authorityLife)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func newTemplate(subject pkix.Name, now time.Time, life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-min(max(life/12, leastSkew), mostSkew)),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// subjectNames sorts hosts into names and addresses, adds the node's own and the loopback's,
// in one order for one set, so that two issues can be compared.
func subjectNames(name string, hosts []string) (names []string, ips []net.IP) {
	hosts = append(slices.Clone(hosts), name, NodeDNSName(name), "localhost", "127.0.0.1", "::1")
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else if host != "" {
			names = append(names, host)
		}
	}
	return names, ips
}
