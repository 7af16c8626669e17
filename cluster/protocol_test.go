package cluster_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/cluster/pki"
)

// TestProtocolVersions: a node of another protocol version is refused, and both sides say why.
func TestProtocolVersions(t *testing.T) {
	var log logText
	c := clustertest.New(t, 1, func(_ int, cfg *cluster.Config) {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	})
	identity, err := pki.NodeIdentity(c.Root(), filepath.Join(t.TempDir(), "pki"), "later", nil)
	if err != nil {
		t.Fatal(err)
	}
	const later = "kontiki-raft/999"
	conn, err := tls.Dial("tcp", c.Node(0).PeerAddr(), identity.PeerClient("n0", later))
	if err == nil {
		conn.Close()
		t.Fatal("a node of another version was let in")
	}
	if err = cluster.ProtocolMismatch(later, err); !errors.Is(err, cluster.ErrVersion) || !strings.Contains(err.Error(), "update the older") {
		t.Errorf("the dialer is told %v", err)
	}
	clustertest.Until(t, func() error {
		if text := log.String(); !strings.Contains(text, later) || !strings.Contains(text, "update the older of the two nodes") {
			return errors.New("the listener's log does not tell: " + text)
		}
		return nil
	})
}

// logText is a log that can be read while it is written.
type logText struct {
	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}
