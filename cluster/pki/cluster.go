package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	caCertFile = "ca.crt"
	caKeyFile  = "ca.key"
	gossipFile = "gossip.key"

	// gossipKeyBytes selects AES-256 in memberlist.
	gossipKeyBytes = 32
)

// Cluster is the root of trust: the certificate authority and the gossip key.
type Cluster struct {
	CA        *x509.Certificate
	GossipKey []byte

	// Now is the clock that certificates and tokens are made by; time.Now if nil.
	Now func() time.Time

	key *ecdsa.PrivateKey
}

// ID names the cluster: the hash of its CA certificate. Data and gossip of another
// cluster are refused by it.
func (c *Cluster) ID() string { return clusterID(c.CA.Raw) }

func clusterID(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}

// CAPEM is the CA certificate as it goes into a kubeconfig.
func (c *Cluster) CAPEM() []byte { return encodeCert(c.CA.Raw) }

// EnsureCluster loads the cluster in dir, or makes it if there is none. The files are
// built beside dir and renamed into place as one, so that of several racing processes
// exactly one wins, and the others load what it made.
func EnsureCluster(dir string) (*Cluster, error) {
	cluster, err := Load(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return cluster, err
	}
	if err := createCluster(dir, writeCluster); err != nil {
		return nil, err
	}
	return Load(dir)
}

// createCluster has write build a cluster beside dir and renames it to dir. Losing the race
// is not an error: the winner's files are there.
func createCluster(dir string, write func(dir string) error) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("cannot create the cluster directory: %w", err)
	}
	temp, err := os.MkdirTemp(parent, filepath.Base(dir)+".tmp-")
	if err != nil {
		return fmt.Errorf("cannot create the cluster directory: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := write(temp); err != nil {
		return err
	}
	_ = os.Remove(dir) // in the way if it is there and empty, and only then does this work
	renameErr := os.Rename(temp, dir)
	if renameErr == nil {
		return syncDir(parent)
	}
	if _, err := os.Stat(filepath.Join(dir, caCertFile)); err == nil {
		return nil
	}
	return fmt.Errorf("cannot create the cluster directory %s: it exists, is not empty and has no %s: %w", dir, caCertFile, renameErr)
}

func writeCluster(dir string) error {
	cert, key, err := newAuthority()
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	gossip := make([]byte, gossipKeyBytes)
	rand.Read(gossip)
	return writeBundle(dir, Bundle{CACert: encodeCert(cert.Raw), CAKey: keyPEM, GossipKey: gossip})
}

// Load reads the cluster in dir. The error wraps fs.ErrNotExist if there is none.
func Load(dir string) (*Cluster, error) {
	cert, err := readCert(filepath.Join(dir, caCertFile))
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(dir, caKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		// Not wrapped: the directory exists but is incomplete, and nothing may be made over it.
		return nil, fmt.Errorf("%s has no %s: copy the whole cluster directory from another node, or remove it and join with a token", dir, caKeyFile)
	}
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s: %s and %s do not belong together", dir, caCertFile, caKeyFile)
	}
	gossip, err := readGossipKey(filepath.Join(dir, gossipFile))
	if err != nil {
		return nil, err
	}
	return &Cluster{CA: cert, key: key, GossipKey: gossip}, nil
}

func readGossipKey(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: copy the whole cluster directory from another node, or remove it and join with a token", path)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(trimSpace(data))
	if err != nil || len(key) != gossipKeyBytes {
		return nil, fmt.Errorf("%s is not a gossip key: want %d bytes in hexadecimal", path, gossipKeyBytes)
	}
	return key, nil
}
