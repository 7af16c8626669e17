package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a server that makes any namespace, says word to any GET, and streams
// one event to any watch.
func fake(t *testing.T, word string) *server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		case r.URL.Query().Has("watch"):
			fmt.Fprintf(w, `{"type":"ADDED","object":{"word":%q}}`, word)
		default:
			fmt.Fprintf(w, "{%q:1}\n", word)
		}
	}))
	t.Cleanup(s.Close)
	return &server{name: word, url: s.URL, client: s.Client()}
}

// TestReplayComparesAll: what a server said is, after a record of it was written
// and read, still the same as what it says, and another's answers and events
// still differ.
func TestReplayComparesAll(t *testing.T) {
	all := []sequence{{"one", []step{watching("/w", "watch=1"), get("/x"), get("/y")}}, {"two", []step{get("/z")}}}
	good, bad := fake(t, "good"), fake(t, "bad")
	live := compareAll(t.Context(), []*server{good, good}, all, 2)
	if live.failure != nil || live.unmeant() != 0 || live.compared != 7 { // the watch is two answers, an order of versions one
		t.Fatalf("%d compared, %d differ, %v", live.compared, live.unmeant(), live.failure)
	}
	path := filepath.Join(t.TempDir(), "record")
	if err := newRecord("v1", all, live.outcomes).save(path); err != nil {
		t.Fatal(err)
	}
	past, err := loadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	replay := func(s *server, q []sequence) *report {
		return compareAll(t.Context(), []*server{{name: "record", record: past}, s}, q, 1)
	}
	if r := replay(good, all); r.failure != nil || r.unmeant() != 0 || r.compared != past.answers() {
		t.Errorf("%d of %d compared, %d differ, %v", r.compared, past.answers(), r.unmeant(), r.failure)
	}
	if r := replay(bad, all[1:]); r.failure != nil || r.unmeant() != 1 {
		t.Errorf("another answer: %d differ, %v", r.unmeant(), r.failure)
	}
	changed := []sequence{{"two", []step{get("/z", "a=b")}}}
	if r := replay(good, changed); r.failure == nil || !strings.Contains(r.failure.Error(), "--record") {
		t.Errorf("a changed row goes unseen: %v", r.failure)
	}
	if older := newRecord("v1", all, replay(bad, all).outcomes); len(past.changes(older)) != 0 {
		t.Error("a record of the record differs from it")
	}
	watch := []sequence{{"one", all[0].steps}}
	if r := replay(bad, watch); r.unmeant() != 3 { // two answers and an event
		t.Errorf("other answers and events: %d differ", r.unmeant())
	}
}
