package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster"
	"kontiki/cluster/pki"
)

// TestOwner: a command that writes to a data directory does so as the user whose data it is,
// or not at all.
func TestOwner(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.json")
	if err := checkOwner(dir); err != nil {
		t.Errorf("without data: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"format":1,"name":"n"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(dir); err != nil {
		t.Errorf("as its owner: %v", err)
	}
	if err := ownedBy(info, dir, os.Getuid()+1); err == nil || !strings.Contains(err.Error(), "sudo -u") {
		t.Errorf("as another user: %v", err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a file to another user, and try the commands on it")
	}
	if _, err := pki.EnsureCluster(pkiDir(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"recover", "--yes"}, {"cert", "renew"}} {
		if _, err := execute(append(args, "--data-dir", dir)...); err == nil || !strings.Contains(err.Error(), "belongs to user") {
			t.Errorf("%v as root: %v", args, err)
		}
	}
}

// TestSecondServer: a server on the data of another one changes nothing there.
func TestSecondServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	file := filepath.Join(c.nodes[0].cfg.DataDir, "pki", "node.crt")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.nodes[0].cfg
	cfg.APIAddr = "127.0.0.1:0"
	if _, err := Start(t.Context(), cfg, hclog.NewNullLogger()); !errors.Is(err, cluster.ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the certificate is another one now, %v", err)
	}
}
