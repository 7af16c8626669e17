package storage_test

import (
	"context"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// fuzzed is a store with a little in it, and a history that begins later.
func fuzzed(t testing.TB) upstream.Interface {
	leader, late := newReplicas(1)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	mustCreate(t, store, labelled("b", "1"))
	mustSet(t, store, "a", label("2"))
	mustDelete(t, store, "b")
	mustCreate(t, store, labelled("c", "1"))
	late[0].catchUp()
	backend := late[0].backend()
	backend.State, backend.Feed = impatient{late[0].machine}, late[0].history.hubFrom(2)
	return podStore(t, backend, "/core", codec)
}

// impatient is a state that is waited for in vain, and not for long.
type impatient struct{ *fsm.FSM }

func (s impatient) WaitIndex(_ context.Context, index uint64) error {
	if s.Index() < index {
		return context.DeadlineExceeded
	}
	return nil
}

// checkFuzzed: whatever a client sends, the blame is the client's (4xx), or it
// asked for a version that is not there yet (504).
func checkFuzzed(t *testing.T, store upstream.Interface, opts upstream.ListOptions) {
	t.Helper()
	out, err := list(store, opts)
	c := code(err)
	if c >= 400 && c < 500 || c == 504 {
		return
	}
	if c != 200 || len(out.Items) > 3 || out.ResourceVersion == "" {
		t.Errorf("%d %v with %d items at %q", c, err, len(out.Items), out.ResourceVersion)
	}
}

// FuzzContinue lists with a token that anybody may have made up.
func FuzzContinue(f *testing.F) {
	good, err := upstream.EncodeContinue("/core/pods/ns/a\x00", "/core/pods/", 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, int64(1), false)
	f.Add(rawToken(`{"v":"meta.k8s.io/v1","rv":-1,"start":"ns/b"}`), int64(0), true)
	f.Add(rawToken(`{"v":"meta.k8s.io/v1","rv":1,"start":"ns/b"}`), int64(2), false)
	f.Add(rawToken(`{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"\u0000"}`), int64(-1), false)
	f.Add(rawToken(`{"v":"meta.k8s.io/v1","rv":-9223372036854775808,"start":"../../x"}`), int64(1), false)
	f.Add("not a token", int64(1), true)
	store := fuzzed(f)
	f.Fuzz(func(t *testing.T, token string, limit int64, zero bool) {
		opts := upstream.ListOptions{}
		opts.Predicate.Continue, opts.Predicate.Limit = token, limit
		if zero {
			opts.ResourceVersion = "0"
		}
		checkFuzzed(t, store, opts)
		// The same as the inside of a well-formed token.
		opts.Predicate.Continue = rawToken(`{"v":"meta.k8s.io/v1","rv":3,"start":` + strconv.Quote(token) + `}`)
		checkFuzzed(t, store, opts)
	})
}

// FuzzListOptions lists with any version, limit and selector.
func FuzzListOptions(f *testing.F) {
	f.Add("3", uint8(1), int64(1), "l=1")
	f.Add("1", uint8(1), int64(0), "")
	f.Add("18446744073709551615", uint8(2), int64(1), "l in (1,2)")
	f.Add("-1", uint8(0), int64(-5), "!l")
	f.Add("0", uint8(0), int64(2), "l!=2")
	store := fuzzed(f)
	matches := []metav1.ResourceVersionMatch{"", exact, notOlderThan} // the API refuses others
	f.Fuzz(func(t *testing.T, version string, match uint8, limit int64, selector string) {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return // the API refuses it
		}
		opts := upstream.ListOptions{ResourceVersion: version, ResourceVersionMatch: matches[int(match)%len(matches)]}
		opts.Predicate.Label, opts.Predicate.Limit = parsed, limit
		checkFuzzed(t, store, opts)
	})
}
