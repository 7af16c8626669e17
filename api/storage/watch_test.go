package storage_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// TestWatchVersions watches a node that is at version 4 of 5, and whose history
// goes back to version 2 (see writeFive). Then the node catches up, and d is
// created at version 6: what was seen before that and what after it is expected.
func TestWatchVersions(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, version string
		initial       *bool // sendInitialEvents
		bookmarks     bool
		before, after string
	}{
		{name: "unset is the latest state, then changes", before: "ADDED a=2@3, ADDED c=1@5", after: "ADDED d=1@6"},
		{name: "0 is any state, then changes", version: "0", before: "ADDED a=2@3", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "0 with bookmarks has no end bookmark", version: "0", bookmarks: true, before: "ADDED a=2@3", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "a version is the changes after it", version: "3", before: "DELETED b=1@4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "the floor is not too old", version: "2", before: "MODIFIED a=2@3, DELETED b=1@4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "the present", version: "4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "too old is one error and the end", version: "1", before: "ERROR 410, closed"},
		{name: "the future is silent until then", version: "5", after: "ADDED d=1@6"},
		{name: "the far future is silent", version: "99"},
		{name: "initial, unset", initial: ptr.To(true), bookmarks: true, before: "ADDED a=2@3, ADDED c=1@5, END @5", after: "ADDED d=1@6"},
		{name: "initial, 0", version: "0", initial: ptr.To(true), bookmarks: true, before: "ADDED a=2@3, END @4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "initial, not older", version: "3", initial: ptr.To(true), bookmarks: true, before: "ADDED a=2@3, END @4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "initial, below the floor", version: "1", initial: ptr.To(true), bookmarks: true, before: "ADDED a=2@3, END @4", after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "initial, future", version: "99", initial: ptr.To(true), bookmarks: true, before: "ERROR 504, closed"},
		{name: "initial, without bookmarks", initial: ptr.To(true), before: "ADDED a=2@3, ADDED c=1@5", after: "ADDED d=1@6"},
		{name: "no initial, unset starts now", initial: ptr.To(false), after: "ADDED d=1@6"},
		{name: "no initial, 0 starts anywhere", version: "0", initial: ptr.To(false), after: "ADDED c=1@5, ADDED d=1@6"},
		{name: "no initial, version", version: "3", initial: ptr.To(false), before: "DELETED b=1@4", after: "ADDED c=1@5, ADDED d=1@6"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, late := newReplicas(1)
				writeFive(t, leader, late[0])
				store := late[0].storeOn(t, late[0].history.hubFrom(2))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				opts := upstream.ListOptions{ResourceVersion: row.version, SendInitialEvents: row.initial}
				opts.Predicate.AllowWatchBookmarks = row.bookmarks
				w := mustWatchIn(t, ctx, store, opts)
				if row.before != "" {
					expect(t, w, row.before)
				}
				expectSilence(t, w, row.before)
				late[0].catchUp()
				mustCreate(t, leader.store(t), labelled("d", "1"))
				late[0].catchUp()
				if row.after != "" {
					expect(t, w, row.after)
				}
				expectSilence(t, w, row.before)
			})
		})
	}
}

// expectSilence is for synctest: nothing more happens, and nothing was sent.
func expectSilence(t *testing.T, w interface{ ResultChan() <-chan event }, seen string) {
	t.Helper()
	synctest.Wait()
	select {
	case event, open := <-w.ResultChan():
		if open {
			t.Errorf("unexpected %s", describe(t, event))
		} else if seen == "" || seen[len(seen)-6:] != "closed" {
			t.Error("the watch ended")
		}
	default:
	}
}

// TestWatchErrors are Statuses that a client can act on.
func TestWatchErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, late := newReplicas(1)
		writeFive(t, leader, late[0])
		store := late[0].storeOn(t, late[0].history.hubFrom(2))

		status := (<-mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1"}).ResultChan()).Object.(*metav1.Status)
		if status.Reason != metav1.StatusReasonExpired || status.Message != "too old resource version: 1 (2)" {
			t.Errorf("too old: %s %q", status.Reason, status.Message)
		}
		future := upstream.ListOptions{ResourceVersion: "99", SendInitialEvents: ptr.To(true)}
		for _, store := range []upstream.Interface{store, podStore(t, late[0].backend(), "/core", codec, uncached)} {
			status = (<-mustWatch(t, store, future).ResultChan()).Object.(*metav1.Status)
			err := &apierrors.StatusError{ErrStatus: *status}
			if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != 1 || !upstream.IsTooLargeResourceVersion(err) {
				t.Errorf("future: %s, come back after %d s", status.Message, seconds)
			}
		}
		if _, err := store.Watch(context.Background(), "/pods/", complete(upstream.ListOptions{ResourceVersion: "abc"})); code(err) != 400 {
			t.Errorf("not a number: %v", err)
		}
	})
}

// TestWatchFallsBehind ends with an error, after what the watch was sent before:
// there is never a gap.
func TestWatchFallsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, _ := newReplicas(0)
		store := leader.storeOn(t, leader.smallHub(4))
		mustCreate(t, store, labelled("a", "0"))
		w := mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1"})
		for range 100 { // more than the watch's buffer and the window hold
			mustSet(t, store, "a", count)
			synctest.Wait()
		}
		last, read := "", 0
		for event := range w.ResultChan() {
			last = describe(t, event)
			if read++; event.Type != "ERROR" && podOf(t, event).Labels["n"] != text(read) {
				t.Fatalf("event %d is %v", read, podOf(t, event).Labels)
			}
		}
		if last != "ERROR 410" || read < 2 {
			t.Errorf("%d events, the last one is %s", read, last)
		}
	})
}

// TestStopEndsWatch closes the channel, also when nobody reads from it.
func TestStopEndsWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, _ := newReplicas(0)
		store := leader.store(t)
		w := mustWatch(t, store, upstream.ListOptions{})
		mustCreate(t, store, newPod("a"))
		for range 50 {
			mustSet(t, store, "a", count)
		}
		w.Stop()
		w.Stop()
		start := time.Now()
		for range w.ResultChan() {
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}
