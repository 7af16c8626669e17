package api

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/fsm"
)

const (
	sentinelPath = "/apis/coordination.k8s.io/v1/namespaces/kube-public/leases/sentinel"
	sentinelKey  = "/coordination.k8s.io/leases/kube-public/sentinel"
)

// fuzzed is a server with one object of every kind, which every input finds as
// it was made.
type fuzzed struct {
	*harness
	begin    map[string]*fsm.Entry
	sentinel []byte
}

func newFuzzed(f *testing.F) *fuzzed {
	h := newHarness(f)
	for _, k := range fuzzKinds {
		if k.subresource == "" && k.seed != "" {
			h.must(http.MethodPost, k.collection(), k.seed, "Content-Type", "application/json")
		}
	}
	h.must(http.MethodPost, strings.TrimSuffix(sentinelPath, "/sentinel"),
		`{"metadata":{"name":"sentinel","labels":{"app":"a"}},"spec":{"holderIdentity":"me"}}`, "Content-Type", "application/json")
	s := &fuzzed{harness: h, begin: h.entries()}
	s.sentinel = h.must(http.MethodGet, sentinelPath, "").Body.Bytes()
	return s
}

func (h *harness) entries() map[string]*fsm.Entry {
	all := map[string]*fsm.Entry{}
	h.Backend.State.View().Ascend("/", "", func(e *fsm.Entry) bool {
		all[e.Key] = e
		return true
	})
	return all
}

// changed returns the keys that are not as they were at the beginning.
func (s *fuzzed) changed() (keys []string) {
	now := s.entries()
	for key, was := range s.begin {
		if now[key] != was {
			keys = append(keys, key)
		}
	}
	for key := range now {
		if s.begin[key] == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// undo writes back what the input has changed.
func (s *fuzzed) undo(t *testing.T, keys []string) {
	now := s.entries()
	for _, key := range keys {
		was := s.begin[key]
		cmd := fsm.Command{Op: fsm.OpDelete, Key: key}
		if was != nil {
			cmd = fsm.Command{Op: fsm.OpCreate, Key: key, Value: was.Value, Expires: was.Expires}
			if now[key] != nil {
				cmd.Op = fsm.OpUpdate
			}
		}
		if result, err := s.log.Propose(context.Background(), cmd); err != nil || result.Code != fsm.OK {
			t.Fatalf("undo %s: %v %v", key, result.Code, err)
		}
		if was != nil {
			s.begin[key], _ = s.Backend.State.View().Get(key)
		}
	}
}

// brief ends a watch once it has begun and sent something, and any request
// after a moment, so that an input takes no longer than that.
type brief struct {
	*httptest.ResponseRecorder
	cancel  context.CancelFunc
	flushes int
}

func (b *brief) Flush() {
	b.ResponseRecorder.Flush()
	if b.flushes++; b.flushes > 1 {
		b.cancel()
	}
}

const moment = 30 * time.Millisecond

// try sends one input and checks what every input must keep: nobody panics, the
// server does not take the blame, a refusal is a Status and has changed
// nothing, and no input reaches the sentinel but through its path.
func (s *fuzzed) try(t *testing.T, r *http.Request) {
	t.Helper()
	a := s.serveBriefly(r)
	if a.panicked != "" {
		t.Fatalf("%s %.300q: panic: %s", r.Method, r.URL.String(), a.panicked)
	}
	if a.Code >= 500 && !excused(r, a) {
		t.Errorf("%s %.300q: %d %.500s", r.Method, r.URL.String(), a.Code, a.Body)
	}
	if a.Code >= 400 && isResource(r.URL.Path) && ours.MatchString(r.URL.Path) && r.Method != http.MethodHead {
		if _, err := statusOf(a); err != nil {
			t.Errorf("%s %.300q: %d with a body that is no Status: %v: %.300q", r.Method, r.URL.String(), a.Code, err, a.Body)
		}
	}
	keys := s.changed()
	if len(keys) == 0 {
		return
	}
	defer s.undo(t, keys)
	// Upstream has two cases of more than one write, of which a later one may be
	// refused: a collection's deletion, and an eviction, which begins with a
	// condition in the pod's status.
	several := r.Method == http.MethodDelete || strings.Contains(r.URL.Path, "/eviction")
	if a.Code >= 400 && !several {
		t.Errorf("%s %.300q: %d %.300s, but changed %q", r.Method, r.URL.String(), a.Code, a.Body, keys)
	}
	if len(keys) > 1 && r.Method != http.MethodDelete {
		t.Errorf("%s %.300q: changed all of %q", r.Method, r.URL.String(), keys)
	}
	if !strings.Contains(r.URL.Path, "leases") {
		s.checkSentinel(t, r)
	}
}

// ours are the paths of which upstream's words are a Status; an unknown group is
// text to it.
var ours = regexp.MustCompile(`^/(api/v1|apis/coordination\.k8s\.io|apis/events\.k8s\.io)/`)

// excused are the answers that upstream means: 501 for what it does not do, 504
// for a version that is yet to come, ServerTimeout (a 500) when the time that
// the client gave was over, and what a proxy says of who is behind it.
func excused(r *http.Request, a answer) bool {
	if a.Code == http.StatusNotImplemented || a.Code == http.StatusGatewayTimeout {
		return true
	}
	status, err := statusOf(a)
	if err == nil && status.Reason == metav1.StatusReasonServerTimeout && r.URL.Query().Has("timeout") {
		return true
	}
	return strings.Contains(r.URL.Path, "/proxy") && (a.Code == http.StatusBadGateway || a.Code == http.StatusServiceUnavailable ||
		strings.HasPrefix(status.Message, "no preferred addresses found"))
}

func (s *fuzzed) checkSentinel(t *testing.T, r *http.Request) {
	t.Helper()
	if got := s.serve(masters(http.MethodGet, sentinelPath, "")); !bytes.Equal(got.Body.Bytes(), s.sentinel) {
		t.Fatalf("%s %.300q has changed the sentinel: %d %s, was %s", r.Method, r.URL.String(), got.Code, got.Body, s.sentinel)
	}
}

func (s *fuzzed) serveBriefly(r *http.Request) answer {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if strings.Contains(r.URL.RawQuery, "watch") || strings.Contains(r.URL.Path, "watch") || strings.HasPrefix(r.URL.Path, "/debug") {
		ctx, cancel = context.WithTimeout(r.Context(), moment)
		defer cancel()
	}
	w := &brief{httptest.NewRecorder(), cancel, 0}
	return answer{w.ResponseRecorder, s.serveTo(w, r.WithContext(ctx))}
}
