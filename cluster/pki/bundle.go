package pki

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Bundle is a cluster directory as it travels to a node that joins: every node signs for
// the ones after it, and issues its own certificates.
type Bundle struct {
	CACert    []byte `json:"caCert"` // PEM
	CAKey     []byte `json:"caKey"`  // PEM
	GossipKey []byte `json:"gossipKey"`
}

// Bundle is the cluster for another node. It holds the CA's key.
func (c *Cluster) Bundle() (Bundle, error) {
	key, err := encodeKey(c.key)
	return Bundle{CACert: c.CAPEM(), CAKey: key, GossipKey: c.GossipKey}, err
}

// Adopt writes the cluster that token names to dir, as one, if there is none yet. Contents
// that are not whole, or of another cluster, leave nothing behind.
func Adopt(dir string, b Bundle, token Token) (*Cluster, error) {
	err := createCluster(dir, func(temp string) error {
		if err := writeBundle(temp, b); err != nil {
			return err
		}
		return checkAdopted(temp, token)
	})
	if err != nil {
		return nil, err
	}
	// Whoever was first has made it; it must still be the right one.
	if err := checkAdopted(dir, token); err != nil {
		return nil, err
	}
	return Load(dir)
}

func checkAdopted(dir string, token Token) error {
	c, err := Load(dir)
	if err != nil {
		return err
	}
	if !token.Names(c) {
		return fmt.Errorf("%w: %s is of cluster %s: use another --data-dir, or a token of that cluster", ErrTokenForeign, dir, c.ID())
	}
	return nil
}

func writeBundle(dir string, b Bundle) error {
	// The certificate is last: a directory that has one is complete.
	return errors.Join(
		writeFile(filepath.Join(dir, gossipFile), []byte(hex.EncodeToString(b.GossipKey)+"\n"), 0o600),
		writeFile(filepath.Join(dir, caKeyFile), b.CAKey, 0o600),
		writeFile(filepath.Join(dir, caCertFile), b.CACert, 0o644),
		syncDir(dir),
	)
}

// Exists says whether dir holds a cluster.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, caCertFile))
	return err == nil
}
