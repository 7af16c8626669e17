package cluster_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
)

// TestRecoveryInterrupted: a recovery that was killed between its steps leaves nothing that
// a server starts on, and is done again; one that was killed before it changed anything is
// as if it had not been.
func TestRecoveryInterrupted(t *testing.T) {
	c := clustertest.New(t, 3)
	put(t, c, 0, "old", 5, 10)
	c.WaitEqual()
	c.Close(0)
	dir := c.Config(0).DataDir

	editNodeFile(t, dir, func(contents map[string]any) { contents["recovering"] = true })
	expectHalfRecovered(t, c)
	if err := recoverData(t, c.Config(0)); err == nil {
		t.Error("recovered beside a majority that is well")
	}
	c.Start(0)
	c.WaitEqual()

	for i := range 3 {
		c.Close(i)
	}
	before := foundingIn(t, dir)
	if err := recoverData(t, c.Config(0)); err != nil {
		t.Fatal(err)
	}
	editNodeFile(t, dir, func(contents map[string]any) { contents["recovering"], contents["founding"] = true, before })
	expectHalfRecovered(t, c)
	if err := recoverData(t, c.Config(0)); err != nil {
		t.Fatal(err)
	}
	if foundingIn(t, dir) == before {
		t.Error("the recovered node is still of the old founding")
	}
	c.Start(0)
	if c.WaitLeader() != 0 || marks(c.FSM(0).View())["old"] != 5 {
		t.Error("it does not go on with what it had")
	}
	private(t, dir)
}

func expectHalfRecovered(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	if err := c.TryStart(0); !errors.Is(err, cluster.ErrHalfRecovered) {
		t.Fatalf("a server starts on data that is being recovered: %v", err)
	}
}

// recoverData is kontiki recover.
func recoverData(t *testing.T, cfg cluster.Config) error {
	t.Helper()
	recovery, err := cluster.OpenRecovery(t.Context(), cfg)
	if err != nil {
		return err
	}
	defer recovery.Close()
	if err := recovery.Refusal(); err != nil {
		return err
	}
	_, err = recovery.Run()
	return err
}

func foundingIn(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "node.json"))
	var contents struct{ Founding string }
	if err == nil {
		err = json.Unmarshal(data, &contents)
	}
	if err != nil {
		t.Fatal(err)
	}
	return contents.Founding
}

// private expects that others on this machine can read nothing of what a recovery has kept.
func private(t *testing.T, dir string) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "raft.before-recover-*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, path := range kept {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != fs.FileMode(0o700) {
			t.Errorf("%s can be read by others: %v, %v", path, info.Mode(), err)
		}
	}
}
