package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kontiki/cluster/clustertest"
)

// TestOldDisk: a follower whose disk is set back, as a restore of a machine's image does, has
// forgotten what it acknowledged and what it served. It is not ready before it has that again.
func TestOldDisk(t *testing.T) {
	c := clustertest.New(t, 3)
	c.WaitVoters(c.WaitLeader(), 3)
	mustPropose(t, c.Node(0), create("/before", ""))
	c.WaitEqual()
	follower := c.Follower()
	data, image := c.Member(follower).Dir, filepath.Join(t.TempDir(), "image")
	c.Close(follower)
	if err := os.CopyFS(image, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	c.Start(follower)
	for i := range 20 {
		mustPropose(t, c.Node(follower), create(fmt.Sprintf("/after/%d", i), ""))
	}
	served := c.FSM(follower).Index()
	c.Crash(follower)
	if err := errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(image))); err != nil {
		t.Fatal(err)
	}
	c.Start(follower)
	if err := c.Node(follower).Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if now := c.FSM(follower).Index(); now < served {
		t.Errorf("it is ready at index %d and had served %d", now, served)
	}
	mustPropose(t, c.Node(follower), create("/again", ""))
	c.WaitEqual()
}
