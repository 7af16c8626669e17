package storage

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"kontiki/fsm"
	"kontiki/watch"
)

const (
	// resultBuffer decouples finding events from sending them. It is small: the
	// window is the buffer.
	resultBuffer = 16
	// bookmarkInterval and bookmarkLead are upstream's: a bookmark about every
	// minute, and one shortly before the watch times out, so that the client
	// resumes from a version that is still in the window.
	bookmarkInterval = time.Minute
	bookmarkLead     = 2 * time.Second
)

// Watch implements storage.Interface. Once the request itself is sound, every
// failure is an ERROR event in the stream, not an error of this call: that is
// where clients expect it.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (apiwatch.Interface, error) {
	key, err := s.prepareKey(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	version, err := s.parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		matcher: s.matcherOf(opts.Predicate), key: key, recursive: opts.Recursive,
		cancel: cancel, results: make(chan apiwatch.Event, resultBuffer),
	}
	initial, err := w.open(ctx, version, opts)
	if err != nil {
		w.fail(err)
		close(w.results)
		return w, nil
	}
	go w.run(ctx, initial)
	return w, nil
}

// watcher is one watch: a cursor on the feed, seen through selectors.
type watcher struct {
	matcher
	key       string
	recursive bool
	cursor    cursor
	from      uint64
	markEnd   bool // the initial events end with an annotated bookmark
	cancel    context.CancelFunc
	results   chan apiwatch.Event
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan apiwatch.Event { return w.results }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// open finds where the watch starts. It returns a view when the watch begins
// with the state at that point, nil when it begins with what comes after.
func (w *watcher) open(ctx context.Context, version uint64, opts storage.ListOptions) (*fsm.View, error) {
	asked := opts.SendInitialEvents
	wantsState := version == 0
	if asked != nil {
		wantsState = *asked
	}
	w.markEnd = asked != nil && *asked && opts.Predicate.AllowWatchBookmarks
	w.from = version
	if !wantsState && version != 0 {
		w.store.warnOfSilence(ctx, w.store.State.View().Index())
		return nil, w.subscribe()
	}
	view, err := w.store.atLeast(ctx, opts.ResourceVersion)
	if err != nil {
		return nil, withRetry(err)
	}
	w.from = view.Index()
	if !wantsState {
		view = nil
	}
	return view, w.subscribe()
}

// withRetry tells the client of a watch when to try again at a version that is
// not there yet, also for what upstream does not cache.
func withRetry(err error) error {
	if status := new(apierrors.StatusError); errors.As(err, &status) && storage.IsTooLargeResourceVersion(err) {
		status.ErrStatus.Details.RetryAfterSeconds = freshnessRetrySeconds
	}
	return err
}

func (w *watcher) subscribe() (err error) {
	w.cursor, err = w.store.subscribe(w)
	return w.expired(err)
}

// expired puts "out of the window" in the words of the API.
func (w *watcher) expired(err error) error {
	if !errors.Is(err, watch.ErrExpired) {
		return err
	}
	return watchExpiredError(w.from, w.store.Feed.Floor(w.store.topic))
}

func (w *watcher) run(ctx context.Context, initial *fsm.View) {
	defer close(w.results)
	defer w.cancel()
	defer w.cursor.Close()
	if initial != nil && !w.sendState(ctx, initial) {
		return
	}
	// Until here the request counts as one that priority-and-fairness limits.
	flowcontrol.WatchInitialized(ctx)
	marks := newBookmarks(ctx, w.pred.AllowWatchBookmarks)
	defer marks.stop()
	for {
		events, err := w.cursor.TryNext()
		if err != nil {
			w.send(ctx, errorEvent(w.expired(err)))
			return
		}
		if !w.sendEvents(ctx, events) {
			return
		}
		// Also when there are more events: a stream that never rests must not
		// keep its bookmarks from a watch that selects nothing of it.
		select {
		case <-ctx.Done():
			return
		case <-w.cursor.Wait():
		case <-marks.due():
			if !w.sendBookmark(ctx, w.cursor.Position(), false) {
				return
			}
			marks.schedule(ctx)
		}
	}
}

// sendState sends the view as ADDED events, in key order.
func (w *watcher) sendState(ctx context.Context, view *fsm.View) bool {
	alive := true
	send := func(entry *fsm.Entry) bool {
		alive = w.sendEvent(ctx, fsm.Event{Index: entry.ModIndex, New: entry})
		return alive
	}
	if w.recursive {
		view.Ascend(w.key, "", send)
	} else if entry, ok := view.Get(w.key); ok {
		send(entry)
	}
	if alive && w.markEnd {
		alive = w.sendBookmark(ctx, view.Index(), true)
	}
	return alive
}

func (w *watcher) sendEvents(ctx context.Context, events []fsm.Event) bool {
	for _, event := range events {
		if w.covers(event.Key()) && !w.sendEvent(ctx, event) {
			return false
		}
	}
	return true
}

func (w *watcher) covers(key string) bool {
	if w.recursive {
		return strings.HasPrefix(key, w.key)
	}
	return key == w.key
}

// sendEvent sends what the selectors see of an event, if anything.
func (w *watcher) sendEvent(ctx context.Context, event fsm.Event) bool {
	seen, err := w.selected(event)
	if err != nil {
		w.send(ctx, errorEvent(err))
		return false
	}
	return seen.Object == nil || w.send(ctx, seen)
}

// selected is the event as the selectors see it: an object that enters them is
// ADDED, one that leaves them is DELETED in its last matching state.
func (w *watcher) selected(event fsm.Event) (apiwatch.Event, error) {
	before, err := w.match(event.Old)
	if err != nil {
		return apiwatch.Event{}, err
	}
	after, err := w.match(event.New)
	if err != nil {
		return apiwatch.Event{}, err
	}
	switch {
	case after != nil && before != nil:
		return apiwatch.Event{Type: apiwatch.Modified, Object: after}, nil
	case after != nil:
		return apiwatch.Event{Type: apiwatch.Added, Object: after}, nil
	case before != nil:
		return apiwatch.Event{Type: apiwatch.Deleted, Object: before.asOf(event.Index)}, nil
	default:
		return apiwatch.Event{}, nil
	}
}

// match returns the entry's object if the selectors let it through.
func (w *watcher) match(entry *fsm.Entry) (*object, error) {
	if entry == nil {
		return nil, nil
	}
	if ok, err := w.lets(entry); !ok {
		return nil, err
	}
	return w.store.objectOf(entry), nil
}

func (w *watcher) sendBookmark(ctx context.Context, index uint64, endOfState bool) bool {
	mark := w.store.NewFunc()
	if err := w.store.versioner.UpdateObject(mark, index); err != nil {
		return w.send(ctx, errorEvent(err))
	}
	if endOfState {
		if err := storage.AnnotateInitialEventsEndBookmark(mark); err != nil {
			return w.send(ctx, errorEvent(err))
		}
	}
	return w.send(ctx, apiwatch.Event{Type: apiwatch.Bookmark, Object: mark})
}

// send delivers an event; false means that the watch is over.
func (w *watcher) send(ctx context.Context, event apiwatch.Event) bool {
	if ctx.Err() != nil { // select picks at random: an ended watch sends no more
		return false
	}
	select {
	case w.results <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// fail is for a watch that never started; the buffer has room.
func (w *watcher) fail(err error) {
	w.cancel()
	w.results <- errorEvent(err)
}

func errorEvent(err error) apiwatch.Event {
	var status *metav1.Status = statusOf(err)
	return apiwatch.Event{Type: apiwatch.Error, Object: status}
}
