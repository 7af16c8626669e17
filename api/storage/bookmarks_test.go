package storage_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestBookmarkTimes is about one a minute, and one 2 s before the watch ends.
func TestBookmarkTimes(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		allowed bool
		timeout time.Duration
		want    []time.Duration
	}{
		{"not allowed", false, 150 * time.Second, nil},
		{"a minute, two, and before the end", true, 150 * time.Second, []time.Duration{60 * time.Second, 120 * time.Second, 148 * time.Second}},
		{"before the end only", true, 10 * time.Second, []time.Duration{8 * time.Second}},
		{"too short", true, time.Second, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, _ := newReplicas(0)
				leader.advance()
				ctx, cancel := context.WithTimeout(context.Background(), row.timeout)
				defer cancel()
				opts := upstream.ListOptions{ResourceVersion: "1"}
				opts.Predicate.AllowWatchBookmarks = row.allowed
				start := time.Now()
				var got []time.Duration
				for event := range mustWatchIn(t, ctx, leader.store(t), opts).ResultChan() {
					if event.Type != apiwatch.Bookmark {
						t.Errorf("got %s", describe(t, event))
					}
					got = append(got, time.Since(start))
				}
				if len(got) != len(row.want) {
					t.Fatalf("bookmarks after %v, want %v", got, row.want)
				}
				for i := range got {
					if got[i] != row.want[i] {
						t.Errorf("bookmarks after %v, want %v", got, row.want)
					}
				}
				if took := time.Since(start); took != row.timeout {
					t.Errorf("the watch ended after %s, want %s", took, row.timeout)
				}
			})
		})
	}
}

// TestBookmarkFollowsTheLog: a bookmark says how far the node is, also when what
// happened is of no interest to the watch, and holds nothing else.
func TestBookmarkFollowsTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, _ := newReplicas(0)
		store := leader.store(t)
		mustCreate(t, store, labelled("a", "1"))
		opts := upstream.ListOptions{ResourceVersion: "1", Predicate: byLabel("1")}
		opts.Predicate.AllowWatchBookmarks = true
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := mustWatchIn(t, ctx, store, opts)
		mustCreate(t, store, labelled("b", "2"))
		leader.advance()
		event := <-w.ResultChan()
		want := &example.Pod{}
		want.ResourceVersion = "3"
		if diff := difference(want, podOf(t, event)); event.Type != apiwatch.Bookmark || diff != "" {
			t.Errorf("%s: %s", event.Type, diff)
		}
	})
}

// TestBookmarksDoNotOvertake has many watches get their bookmark at some moment
// of a stream of writes. What a bookmark says to be covered has come before it,
// and nothing of that comes after it.
func TestBookmarksDoNotOvertake(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, newPod("a"))
	ctx, cancel := context.WithCancel(context.Background())
	var writer, watchers sync.WaitGroup
	writer.Go(func() {
		pace := time.NewTicker(200 * time.Microsecond) // or watches fall out of the window
		defer pace.Stop()
		for ctx.Err() == nil {
			<-pace.C
			if err := set(store, "a", &example.Pod{}, count); err != nil {
				t.Errorf("write: %v", err)
				return
			}
		}
	})
	for range 40 {
		// 2 s before its end is when a watch gets its last bookmark.
		timeout := 5*time.Second + time.Duration(rng.IntN(400))*time.Millisecond
		watchers.Go(func() { checkBookmark(t, store, timeout, seed) })
	}
	watchers.Wait()
	cancel()
	writer.Wait()
}

// checkBookmark reads until the event after the bookmark.
func checkBookmark(t *testing.T, store upstream.Interface, timeout time.Duration, seed uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	opts := complete(upstream.ListOptions{ResourceVersion: "1"})
	opts.Predicate.AllowWatchBookmarks = true
	w, err := store.Watch(ctx, "/pods/", opts)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	defer w.Stop()
	seen, marked := 1, 0 // every version after the first is one write
	for event := range w.ResultChan() {
		version, _ := strconv.Atoi(podOf(t, event).ResourceVersion)
		switch {
		case event.Type == apiwatch.Bookmark:
			marked = version
			if version != seen {
				t.Errorf("seed %d: bookmark at %d after event %d", seed, version, seen)
			}
		case event.Type != apiwatch.Modified || version != seen+1:
			t.Errorf("seed %d: %s at %d after %d", seed, event.Type, version, seen)
			return
		case marked > 0:
			return
		}
		seen = version
	}
	t.Errorf("seed %d: the watch of %s ended at %d, bookmark at %d", seed, timeout, seen, marked)
}

// TestBookmarkOnABusyTopic: a watch that selects nothing of a stream which never
// rests has nothing but bookmarks to learn how far it is.
func TestBookmarkOnABusyTopic(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, newPod("a"))
	mustSet(t, store, "a", count)
	ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond) // the bookmark is 2 s before
	defer cancel()
	opts := upstream.ListOptions{ResourceVersion: "1", Predicate: byLabel("none")}
	opts.Predicate.AllowWatchBookmarks = true
	opts.Predicate.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		// Looking at the last event makes the next one.
		if obj.(*example.Pod).ResourceVersion == text(leader.length()) && ctx.Err() == nil {
			if err := set(store, "a", &example.Pod{}, count); err != nil {
				t.Errorf("write: %v", err)
			}
		}
		return nil, nil, nil
	}
	w := mustWatchIn(t, ctx, store, opts)
	if event, open := <-w.ResultChan(); !open || event.Type != apiwatch.Bookmark {
		t.Errorf("got a %q, want a bookmark, after %d writes", event.Type, leader.length())
	}
}
