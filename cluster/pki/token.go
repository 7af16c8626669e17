package pki

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A join token is CAHASH.EXPIRY-NONCE.SIGNATURE, one word for a shell: the SHA-256 of the
// CA certificate, the Unix second at which it ends, and an HMAC over both under a key that
// follows from the CA's. So every node that holds the CA key can tell a good token, nothing
// is stored, and there are tokens before there is a cluster. A token cannot be revoked; it
// is short-lived instead.
const (
	tokenPurpose    = "kontiki join token 1"
	tokenNonceBytes = 8

	// MinTokenLife and MaxTokenLife bound how long a token may be used.
	MinTokenLife = time.Second
	MaxTokenLife = 30 * 24 * time.Hour
)

// What is wrong with a token. Each is wrapped in one line that says what to do.
var (
	// ErrTokenMalformed: it is no token, or only a part of one.
	ErrTokenMalformed = errors.New("not a join token")

	// ErrTokenForeign: it was made by another cluster.
	ErrTokenForeign = errors.New("join token of another cluster")

	// ErrTokenForged: its signature is not that of the cluster it names.
	ErrTokenForged = errors.New("join token with a wrong signature")

	// ErrTokenExpired: its time is over.
	ErrTokenExpired = errors.New("join token has expired")
)

// Token is the part of a join token that its holder can read without the CA key.
type Token struct {
	CAHash  [sha256.Size]byte
	Expires time.Time

	signed string // what the signature is over
	mac    []byte
}

// NewToken makes a join token that is good for life.
func (c *Cluster) NewToken(life time.Duration) (text string, expires time.Time, err error) {
	if life < MinTokenLife || life > MaxTokenLife {
		return "", expires, fmt.Errorf("a token's life of %s is not from %s to %s", life, MinTokenLife, MaxTokenLife)
	}
	expires = c.now().Add(life).Truncate(time.Second)
	nonce := make([]byte, tokenNonceBytes)
	rand.Read(nonce)
	hash := sha256.Sum256(c.CA.Raw)
	signed := fmt.Sprintf("%x.%d-%x", hash, expires.Unix(), nonce)
	mac, err := c.tokenMAC(signed)
	return signed + "." + hex.EncodeToString(mac), expires, err
}

// ParseToken reads a token. Whether it is genuine, only the cluster can tell: see CheckToken.
func ParseToken(text string) (Token, error) {
	t := Token{}
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return t, malformedToken()
	}
	hash, hashErr := hex.DecodeString(parts[0])
	mac, macErr := hex.DecodeString(parts[2])
	until, _, ok := strings.Cut(parts[1], "-")
	seconds, timeErr := strconv.ParseInt(until, 10, 64)
	if errors.Join(hashErr, macErr, timeErr) != nil || !ok || len(hash) != len(t.CAHash) || len(mac) != sha256.Size || seconds > math.MaxInt32*4 {
		return t, malformedToken()
	}
	copy(t.CAHash[:], hash)
	t.Expires, t.signed, t.mac = time.Unix(seconds, 0), parts[0]+"."+parts[1], mac
	return t, nil
}

func malformedToken() error {
	return fmt.Errorf("%w: copy the whole word that `kontiki token create` prints", ErrTokenMalformed)
}

// CheckToken says whether this cluster made the token and its time is not over.
func (c *Cluster) CheckToken(text string) error {
	t, err := ParseToken(text)
	if err != nil {
		return err
	}
	mac, err := c.tokenMAC(t.signed)
	switch {
	case err != nil:
		return err
	case t.CAHash != sha256.Sum256(c.CA.Raw):
		return fmt.Errorf("%w: make one with `kontiki token create` on a member of the cluster that is to be joined", ErrTokenForeign)
	case !hmac.Equal(mac, t.mac):
		return fmt.Errorf("%w: copy the whole word that `kontiki token create` prints", ErrTokenForged)
	case !c.now().Before(t.Expires):
		return fmt.Errorf("%w, at %s: make a new one with `kontiki token create` on a member", ErrTokenExpired, t.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

func (c *Cluster) tokenMAC(signed string) ([]byte, error) {
	secret, err := c.key.Bytes()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, c.CA.Raw, tokenPurpose, sha256.Size)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return mac.Sum(nil), nil
}

// TLS is for a connection to a member of which nothing is known but the CA's hash: the
// server must present that CA and a node's certificate from it. Under which name it is
// dialed does not matter, as any member will do.
func (t Token) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		// VerifyConnection does it; the standard way has no CA to start from.
		InsecureSkipVerify: true,
		VerifyConnection:   t.verify,
	}
}

func (t Token) verify(state tls.ConnectionState) error {
	pool := x509.NewCertPool()
	for _, cert := range state.PeerCertificates {
		if sha256.Sum256(cert.Raw) == t.CAHash {
			pool.AddCert(cert)
		}
	}
	if pool.Equal(x509.NewCertPool()) {
		return fmt.Errorf("%w: the server's CA is not the one that the token names: is the address right?", ErrTokenForeign)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("the server's certificate is not good (do both clocks show the same time?): %w", err)
	}
	_, err = NodeName(state)
	return err
}

// Names says whether the token is for the cluster.
func (t Token) Names(c *Cluster) bool { return t.CAHash == sha256.Sum256(c.CA.Raw) }
