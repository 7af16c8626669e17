package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is one of a list, and what asks for the next.
type page struct {
	Metadata metav1.ListMeta
	Items    []metav1.PartialObjectMetadata
}

// TestPagesAcrossLeaders reads a list in pages, each from another leader than the one before,
// while objects come and go: all pages are of the state that the first one was of.
func TestPagesAcrossLeaders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprintf("page-%d", i))
		if a := c.createNode(i%3, want[i]); a.code != http.StatusCreated {
			t.Fatalf("create: %d %s", a.code, a.body)
		}
	}
	first := c.page(c.leader(), "")
	now, names := first, namesOf(first)
	for round := range 2 {
		leader := c.leader()
		c.crash(leader)
		other := c.up()[round]
		until(t, func() error { // there is a leader again, and it has what this node has
			if a := c.createNode(other, fmt.Sprintf("page-0-%d", round)); a.code != http.StatusCreated && a.code != http.StatusConflict {
				return fmt.Errorf("create: %d %s", a.code, a.body)
			}
			return nil
		})
		now = c.page(other, now.Metadata.Continue)
		if now.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
			t.Errorf("page %d is of version %s, the first one of %s", round+2, now.Metadata.ResourceVersion, first.Metadata.ResourceVersion)
		}
		names = append(names, namesOf(now)...)
		c.start(leader)
		c.waitReady()
	}
	if now.Metadata.Continue != "" || !slices.Equal(names, want) {
		t.Errorf("the pages have %v and go on with %q, want %v", names, now.Metadata.Continue, want)
	}
}

// page reads three nodes from server i.
func (c *testCluster) page(i int, token string) (p page) {
	c.t.Helper()
	query := url.Values{"limit": {"3"}, "continue": {token}}
	a := c.http(i).get("/api/v1/nodes?" + query.Encode())
	if a.code != http.StatusOK {
		c.t.Fatalf("a page: %d %s", a.code, a.body)
	}
	if err := fromJSON(a.body, &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

func namesOf(p page) (names []string) {
	for _, item := range p.Items {
		names = append(names, item.Name)
	}
	return names
}
