package storage_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestPagesAreOneState lists in pages, each page on another node, while writes go
// on. The pages together are the state at the first one's version.
func TestPagesAreOneState(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	leader, late := newReplicas(2)
	var stores []upstream.Interface
	for _, n := range append(late, leader) {
		stores = append(stores, n.store(t))
	}
	checkPages(t, stores, leader.history, "/core/pods/", seed)
}

// checkPages makes objects through all stores while it lists through all.
func checkPages(t *testing.T, stores []upstream.Interface, h *history, topic string, seed uint64) {
	t.Helper()
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for i, store := range stores {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		scribble(store, rng, 30) // so that the first list finds something
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					scribble(store, rng, 1)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for round := range 20 {
		version, items, err := readPages(stores, rng)
		if err != nil {
			t.Errorf("seed %d, round %d: %v", seed, round, err)
			continue
		}
		if want := h.podsAt(t, topic, version); items != want {
			t.Errorf("seed %d, round %d: at %d\ngot  %s\nwant %s", seed, round, version, items, want)
		}
	}
	close(stop)
	writers.Wait()
}

// scribble makes random writes. That some of them fail, because the object is
// there or is not, is what makes them random.
func scribble(store upstream.Interface, rng *rand.Rand, n int) {
	for range n {
		name := fmt.Sprintf("p%02d", rng.IntN(40))
		switch rng.IntN(3) {
		case 0:
			remove(store, name, &example.Pod{}, nil)
		default:
			pod := labelled(name, text(rng.Int()))
			store.GuaranteedUpdate(context.Background(), keyOf(name), &example.Pod{}, true, nil,
				upstream.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return pod, nil }), nil)
		}
	}
}

// readPages lists in pages of random size.
func readPages(stores []upstream.Interface, rng *rand.Rand) (version uint64, items string, err error) {
	var opts upstream.ListOptions
	for {
		opts.Predicate.Limit = int64(1 + rng.IntN(9))
		page, err := list(stores[rng.IntN(len(stores))], opts)
		if err != nil {
			return 0, "", err
		}
		at, err := upstream.APIObjectVersioner{}.ParseResourceVersion(page.ResourceVersion)
		if err != nil || version != 0 && version != at {
			return 0, "", fmt.Errorf("a page is at %d, the one before at %d, %v", at, version, err)
		}
		version, items, opts.Predicate.Continue = at, items+names(page.Items), page.Continue
		if page.Continue == "" {
			return version, items, nil
		}
	}
}

// TestExpiredToken: a token whose version is out of the window is answered with
// one that goes on from the same key, in the latest state.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		mustCreate(t, store, labelled(name, "1"))
	}
	var opts upstream.ListOptions
	opts.Predicate.Limit = 2
	opts.Predicate.Continue = mustList(t, store, opts).Continue
	mustDelete(t, store, "c")
	mustCreate(t, store, labelled("aa", "1")) // before the place of the token
	mustCreate(t, store, labelled("e", "1"))

	younger := leader.storeOn(t, leader.history.hubFrom(5))
	_, err := list(younger, opts)
	var status apierrors.APIStatus
	if code(err) != 410 || !errors.As(err, &status) || status.Status().Reason != "Expired" || status.Status().ListMeta.Continue == "" {
		t.Fatalf("got %v, want 410 with a token", err)
	}
	opts.Predicate.Continue = status.Status().ListMeta.Continue
	opts.Predicate.Limit = 1
	page := mustList(t, younger, opts)
	if got := names(page.Items); got != "d=1 " || page.ResourceVersion != "7" {
		t.Errorf("the new token gives %sat %s, want d=1 at 7", got, page.ResourceVersion)
	}
	// From here on it is an ordinary token, of one state again.
	opts.Predicate.Continue = page.Continue
	mustCreate(t, store, labelled("f", "1"))
	if page = mustList(t, younger, opts); names(page.Items) != "e=1 " || page.ResourceVersion != "7" || page.Continue != "" {
		t.Errorf("the next page is %sat %s, continue %q; want e=1 at 7 and the end", names(page.Items), page.ResourceVersion, page.Continue)
	}
}

// TestTokens that nobody gave out, and ones with options that do not go with them.
func TestTokens(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	mustCreate(t, store, labelled("b", "1"))
	good, err := upstream.EncodeContinue("/core/pods/ns/a\x00", "/core/pods/", 2)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, token, version string
		code                 int
		items                string
	}{
		{"good", good, "", 200, "b=1 "},
		{"at version 0", good, "0", 200, "b=1 "},
		{"at a version", good, "2", 400, ""},
		{"not base64", "!", "", 400, ""},
		{"not JSON", "AAAA", "", 400, ""},
		{"version 0", rawToken(`{"v":"meta.k8s.io/v1","rv":0,"start":"ns/a"}`), "", 400, ""},
		{"another format", rawToken(`{"v":"meta.k8s.io/v2","rv":2,"start":"ns/a"}`), "", 400, ""},
		{"nowhere", rawToken(`{"v":"meta.k8s.io/v1","rv":2,"start":""}`), "", 400, ""},
		{"out of the resource", rawToken(`{"v":"meta.k8s.io/v1","rv":2,"start":"../secrets/ns/a"}`), "", 400, ""},
		{"past the end", rawToken(`{"v":"meta.k8s.io/v1","rv":2,"start":"zz"}`), "", 200, ""},
		{"the latest", rawToken(`{"v":"meta.k8s.io/v1","rv":-1,"start":"ns/b"}`), "", 200, "b=1 "},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			opts := upstream.ListOptions{ResourceVersion: row.version}
			opts.Predicate.Continue = row.token
			out, err := list(store, opts)
			if code(err) != row.code || names(out.Items) != row.items {
				t.Errorf("got %d %v, %q; want %d, %q", code(err), err, names(out.Items), row.code, row.items)
			}
		})
	}
}

func rawToken(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
