package storage_test

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	upstream "k8s.io/apiserver/pkg/storage"
)

const (
	exact        = metav1.ResourceVersionMatchExact
	notOlderThan = metav1.ResourceVersionMatchNotOlderThan
)

// TestListVersions asks a node that is at version 4 of 5, and whose history goes
// back to version 2. What the API refuses before it comes here has no row.
//
//	version  1    2    3    4    5
//	         +a1  +b1  a2   -b   +c1
func TestListVersions(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, version string
		match         metav1.ResourceVersionMatch
		limit         int64
		code          int
		at, items     string
		more          bool
	}{
		{name: "unset is the latest", code: 200, at: "5", items: "a=2 c=1 "},
		{name: "0 is anything", version: "0", code: 200, at: "4", items: "a=2 "},
		{name: "older", version: "3", code: 200, at: "4", items: "a=2 "},
		{name: "what the node has", version: "4", code: 200, at: "4", items: "a=2 "},
		{name: "newer than the node", version: "5", code: 504},
		{name: "unset with limit", limit: 1, code: 200, at: "5", items: "a=2 ", more: true},
		{name: "a version with a limit is exact", version: "3", limit: 1, code: 200, at: "3", items: "a=2 ", more: true},
		{name: "exact with limit", version: "3", match: exact, limit: 1, code: 200, at: "3", items: "a=2 ", more: true},
		{name: "not older, with limit", version: "3", match: notOlderThan, limit: 1, code: 200, at: "4", items: "a=2 "},
		{name: "exact", version: "3", match: exact, code: 200, at: "3", items: "a=2 b=1 "},
		{name: "exact at the floor", version: "2", match: exact, code: 200, at: "2", items: "a=1 b=1 "},
		{name: "exact below the floor", version: "1", match: exact, code: 410},
		{name: "exact in the future", version: "5", match: exact, code: 504},
		{name: "not older than 0", version: "0", match: notOlderThan, code: 200, at: "4", items: "a=2 "},
		{name: "not older than below the floor", version: "1", match: notOlderThan, code: 200, at: "4", items: "a=2 "},
		{name: "not older than the future", version: "5", match: notOlderThan, code: 504},
		{name: "not a number", version: "abc", code: 400},
		{name: "exactly not a number", version: "abc", match: exact, code: 400},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, late := newReplicas(1)
				writeFive(t, leader, late[0])
				store := late[0].storeOn(t, late[0].history.hubFrom(2))
				opts := upstream.ListOptions{ResourceVersion: row.version, ResourceVersionMatch: row.match}
				opts.Predicate.Limit = row.limit
				out, err := list(store, opts)
				if code(err) != row.code {
					t.Fatalf("got %d %v, want %d", code(err), err, row.code)
				}
				if got := names(out.Items); out.ResourceVersion != row.at || got != row.items || (out.Continue != "") != row.more {
					t.Errorf("got %s at %q, more %t; want %s at %q, more %t", got, out.ResourceVersion, out.Continue != "", row.items, row.at, row.more)
				}
			})
		})
	}
}

// writeFive makes the history that TestListVersions draws.
func writeFive(t *testing.T, leader, late *replica) {
	t.Helper()
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	mustCreate(t, store, labelled("b", "1"))
	mustSet(t, store, "a", label("2"))
	mustDelete(t, store, "b")
	late.catchUp()
	mustCreate(t, store, labelled("c", "1"))
}

// TestLimitAtZero: what upstream serves from a watch cache comes whole at version
// 0, also the rest after a token.
func TestLimitAtZero(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	cached := leader.store(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		mustCreate(t, cached, labelled(name, "1"))
	}
	rows := map[string]struct {
		store       upstream.Interface
		first, rest string
	}{
		"cached":   {cached, "a=1 b=1 c=1 d=1 ", "b=1 c=1 d=1 "},
		"uncached": {podStore(t, leader.backend(), "/core", codec, uncached), "a=1 ", "b=1 "},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var opts upstream.ListOptions
			opts.Predicate.Limit = 1
			token := mustList(t, row.store, opts).Continue
			opts.ResourceVersion = "0"
			if got := names(mustList(t, row.store, opts).Items); got != row.first {
				t.Errorf("got %s, want %s", got, row.first)
			}
			opts.Predicate.Continue = token
			if got := names(mustList(t, row.store, opts).Items); got != row.rest {
				t.Errorf("after the token: got %s, want %s", got, row.rest)
			}
		})
	}
}

// TestEmptyList has an empty slice of items, which becomes [] and not null.
func TestEmptyList(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	leader.advance()
	out := mustList(t, leader.store(t), upstream.ListOptions{})
	if out.Items == nil || len(out.Items) != 0 || out.ResourceVersion != "1" {
		t.Errorf("got %#v at %q, want no items at 1", out.Items, out.ResourceVersion)
	}
}

// TestRemainingItemCount is told when there is no selector, and then exactly.
func TestRemainingItemCount(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		mustCreate(t, store, labelled(name, "1"))
	}
	var opts upstream.ListOptions
	opts.Predicate.Limit = 2
	for _, want := range []int64{3, 1} {
		page := mustList(t, store, opts)
		if page.RemainingItemCount == nil || *page.RemainingItemCount != want {
			t.Errorf("remaining: got %v, want %d", page.RemainingItemCount, want)
		}
		opts.Predicate.Continue = page.Continue
	}
	if last := mustList(t, store, opts); last.RemainingItemCount != nil || last.Continue != "" {
		t.Errorf("the last page says that %v remain, continue %q", last.RemainingItemCount, last.Continue)
	}
	opts.Predicate.Continue, opts.Predicate.Label = "", labels.Set{"l": "1"}.AsSelector()
	if page := mustList(t, store, opts); page.RemainingItemCount != nil || page.Continue == "" {
		t.Errorf("with a selector %v remain, continue %q", page.RemainingItemCount, page.Continue)
	}
}
