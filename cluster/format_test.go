package cluster_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/cluster/pki"
	"kontiki/fsm"
)

var updateGolden = flag.Bool("update", false, "make testdata/data-v2 anew: only while no release has written that format")

// goldenDir is a data directory of the present format, older ones lie beside it: see makeGolden.
const goldenDir = "testdata/data-v2"

// goldenValue is long and alike enough to be compressed in the log of the second format.
func goldenValue(mark string) []byte { return []byte(strings.Repeat(mark+" ", 400)) }

// TestGoldenDataDirectory opens the data directories of all formats as they are committed,
// with a snapshot, a log behind it and a restored backup in it, and goes on with it: under
// the id that its founding drew, and if it is from before there were ids, under one that
// all nodes of that cluster come to.
func TestGoldenDataDirectory(t *testing.T) {
	if *updateGolden {
		makeGolden(t)
	}
	const drawn = "0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		dir     string
		written map[string]any
		value   string
	}{
		"before founding ids": {"testdata/data-v1", map[string]any{"founding": nil, "nonVoter": nil}, "after"},
		"with a founding id":  {"testdata/data-v1", map[string]any{"founding": drawn, "nonVoter": false}, "after"},
		"compressed":          {goldenDir, map[string]any{"founding": drawn}, string(goldenValue("after"))},
	} {
		t.Run(name, func(t *testing.T) {
			founding, clusterID := openGolden(t, test.dir, test.value, test.written)
			want := test.written["founding"]
			if want == nil {
				sum := sha256.Sum256([]byte("kontiki founding of " + clusterID))
				want = hex.EncodeToString(sum[:16])
			}
			if founding != want {
				t.Errorf("it goes on as founding %q, want %v", founding, want)
			}
		})
	}
}

// openGolden goes on with a copy of golden in whose node.json is written, and returns which
// founding of which CA it is of then. The newest object has the value.
func openGolden(t *testing.T, golden, value string, written map[string]any) (founding, clusterID string) {
	t.Helper()
	c := clustertest.NewEmpty(t, 1)
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	editNodeFile(t, dir, func(contents map[string]any) {
		contents["cluster"] = c.Root().ID()
		for key, value := range written {
			if contents[key] = value; value == nil {
				delete(contents, key)
			}
		}
	})
	machine := fsm.New()
	cfg := goldenConfig(t, c.Root(), dir, c.Logger("golden"))
	node, err := cluster.Open(cfg, machine)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Abort()
	ctx, cancel := context.WithTimeout(t.Context(), clustertest.Patience)
	defer cancel()
	if err := node.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(marks(machine.View())); got != "map[after:10 old:20]" {
		t.Errorf("it has %s", got)
	}
	if e, ok := machine.View().Get("/core/things/after-09"); !ok || string(e.Value) != value {
		t.Errorf("its newest object is %+v", e)
	}
	if _, err := node.Propose(ctx, fsm.Command{Op: fsm.OpCreate, Key: "/core/things/more-0", Value: []byte("x")}); err != nil {
		t.Error(err)
	}
	editNodeFile(t, dir, func(contents map[string]any) {
		founding, _ = contents["founding"].(string)
		if contents["format"] != 2.0 {
			t.Errorf("what it goes on with is of format %v", contents["format"])
		}
	})
	return founding, c.Root().ID()
}

func goldenConfig(t *testing.T, root *pki.Cluster, dir string, log hclog.Logger) cluster.Config {
	t.Helper()
	identity, err := pki.NodeIdentity(root, filepath.Join(t.TempDir(), "pki"), "golden", nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := cluster.DefaultConfig()
	cfg.Name, cfg.DataDir, cfg.Identity, cfg.GossipKey = "golden", dir, identity, root.GossipKey
	cfg.PeerAddr, cfg.GossipAddr, cfg.Tuning, cfg.Logger = "127.0.0.1:0", "127.0.0.1:0", clustertest.Tuning(), log
	return cfg
}

// makeGolden writes goldenDir. Every file of a format stays as it is, for good, once a
// release has written it: a new format gets a directory of its own.
func makeGolden(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(goldenDir); err != nil {
		t.Fatal(err)
	}
	c := clustertest.NewEmpty(t, 1)
	cfg := goldenConfig(t, c.Root(), goldenDir, c.Logger("golden"))
	cfg.SnapshotThreshold, cfg.SnapshotInterval, cfg.TrailingLogs = 25, 20*time.Millisecond, 3
	machine := fsm.New()
	node, err := cluster.Open(cfg, machine)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clustertest.Patience)
	defer cancel()
	write := func(mark string, count int) {
		for i := range count {
			if _, err := node.Propose(ctx, fsm.Command{Op: fsm.OpCreate, Key: fmt.Sprintf("/core/things/%s-%02d", mark, i), Value: goldenValue(mark), Expires: 4e9}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("old", 20)
	backup := backupOf(t, node)
	write("lost", 3)
	if _, err := node.Restore(ctx, bytes.NewReader(backup)); err != nil {
		t.Fatal(err)
	}
	write("after", 8)
	clustertest.Until(t, func() error {
		if found, _ := filepath.Glob(goldenDir + "/raft/snapshots/*/state.bin"); len(found) == 0 {
			return errors.New("no snapshot yet")
		}
		return nil
	})
	for i := 8; i < 10; i++ {
		if _, err := node.Propose(ctx, fsm.Command{Op: fsm.OpCreate, Key: fmt.Sprintf("/core/things/after-%02d", i), Value: goldenValue("after")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Close(ctx); err != nil {
		t.Fatal(err)
	}
	shrink(t, goldenDir+"/raft/raft.db")
}

// shrink drops the free pages of a file, which bbolt makes 16 MB long.
func shrink(t *testing.T, path string) {
	t.Helper()
	from, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	to, err := bbolt.Open(path+".small", 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bbolt.Compact(to, from, 0), to.Close(), from.Close(), os.Rename(path+".small", path)); err != nil {
		t.Fatal(err)
	}
}

func editNodeFile(t *testing.T, dir string, edit func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "node.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var contents map[string]any
	if err := json.Unmarshal(data, &contents); err != nil {
		t.Fatal(err)
	}
	edit(contents)
	if data, err = json.Marshal(contents); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDataFormat: a directory from before the format was written down opens, one of a later
// release is refused, in words that help, and left alone.
func TestDataFormat(t *testing.T) {
	c := clustertest.New(t, 1)
	dir := c.Member(0).Dir
	c.Crash(0)
	editNodeFile(t, dir, func(contents map[string]any) {
		delete(contents, "format")
		delete(contents, "founding")
		delete(contents, "nonVoter")
	})
	c.Start(0)
	c.WaitLeader()
	c.Crash(0)
	editNodeFile(t, dir, func(contents map[string]any) { contents["format"] = 3 })
	if err := os.WriteFile(filepath.Join(dir, "raft", "raft.db"), []byte("whatever that release writes"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := c.TryStart(0)
	if !errors.Is(err, cluster.ErrNewerData) || !strings.Contains(err.Error(), "has data format 3, this program knows 2: a later release of kontiki wrote it") {
		t.Errorf("a later format: %v", err)
	}
	if err := recoverData(t, c.Config(0)); !errors.Is(err, cluster.ErrNewerData) {
		t.Errorf("recovery of a later format: %v", err)
	}
}

// TestBackupGolden reads a backup of the present format as it is committed.
func TestBackupGolden(t *testing.T) {
	path := "testdata/backup-v1"
	if *updateGolden {
		c := clustertest.New(t, 1)
		put(t, c, 0, "old", 3, 10)
		if err := os.WriteFile(path, backupOf(t, c.Node(0)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	stamp, err := cluster.ReadBackup(bytes.NewReader(golden), func(*fsm.Entry) { count++ })
	if err != nil || count != 3 || stamp.Index == 0 || stamp.Term == 0 || stamp.Node != "n0" || stamp.Time.IsZero() {
		t.Errorf("%d entries, %+v, %v", count, stamp, err)
	}
}
