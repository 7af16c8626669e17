package main

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"kontiki/api"
)

// TestDigest asks each node what its state is, until they are at one index:
// then they have one digest, and one of them leads the term that all are in.
func TestDigest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	if a := c.createNode(0, "digested"); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	leader := c.nodes[c.leader()].cfg.Name
	until(t, func() error {
		first := c.digest(0)
		for i := range c.nodes {
			d := c.digest(i)
			if d.Index != first.Index || d.Term != first.Term {
				return fmt.Errorf("node %d is at %d in term %d, node 0 at %d in term %d", i, d.Index, d.Term, first.Index, first.Term)
			}
			if d.Name != c.nodes[i].cfg.Name || d.Leader != leader || d.Digest != first.Digest || (d.State == "Leader") != (d.Name == leader) {
				t.Fatalf("node %d answers %+v, node 0 %+v; %s leads", i, d, first, leader)
			}
		}
		return nil
	})
	before := c.digest(0)
	view := c.nodes[0].State.View()
	if sum := view.Digest(); before.Index == view.Index() && before.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest is %s, want %x", before.Digest, sum)
	}
	if a := c.createNode(0, "another"); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	if after := c.digest(0); after.Index <= before.Index || after.Digest == before.Digest {
		t.Errorf("after a write: %+v, before: %+v", after, before)
	}
}

func (c *testCluster) digest(i int) (d api.Digest) {
	c.t.Helper()
	a := c.http(i).get(api.DigestPath)
	if err := fromJSON(a.body, &d); err != nil || a.code != http.StatusOK {
		c.t.Fatalf("digest of node %d: %d %s, %v", i, a.code, a.body, err)
	}
	return d
}
