package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"kontiki/scripts/chaos/history"
)

const (
	// watchRetry is the pause after a watch that came to nothing.
	watchRetry = 200 * time.Millisecond
	// liveMax bounds the watches that move and stray.
	liveMax = 4 * time.Second
	// readPauseMax is how long a slow reader rests after an event.
	readPauseMax = 50 * time.Millisecond
	drainPause   = 20 * time.Millisecond
)

// request is one watch to be made.
type request struct {
	name     string
	node     int
	resource *resource
	key      string // name of the one object; empty for all
	from     uint64
	initial  bool // with the state first, and then what comes after
	resumes  uint64
	slow     *rand.Rand // rests after events, if set
	at       func(id, version uint64)
}

// ended is what came of a watch.
type ended struct {
	id   uint64
	last uint64 // where it can be resumed, 0 if it cannot
	code int
}

func (q *request) path(namespace string) string {
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}}
	if q.initial {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		query.Set("resourceVersion", strconv.FormatUint(q.from, 10))
	}
	if q.key != "" {
		query.Set("fieldSelector", "metadata.name="+q.key)
	}
	return q.resource.path(namespace, "") + "?" + query.Encode()
}

// watch makes a watch and records it until it ends.
func (l *Load) watch(ctx context.Context, q request) ended {
	client := l.clients[q.node]
	record := history.Watch{
		ID: l.rec.NextID(), Client: q.name, Node: client.Node, Resource: q.resource.name,
		Call: l.rec.Now(), From: q.from, Initial: q.initial, Resumes: q.resumes,
	}
	if q.key != "" {
		record.Key = q.resource.key(q.key)
	}
	l.rec.Open(record)
	end := ended{id: record.ID, last: q.from}
	err := l.follow(ctx, client, &q, &end)
	l.rec.End(record.ID, end.code, fmt.Sprint(err))
	return end
}

// follow reads a watch's events.
func (l *Load) follow(ctx context.Context, client *Client, q *request, end *ended) error {
	response, err := client.open(ctx, http.MethodGet, q.path(l.cfg.Namespace), "", jsonType)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, bodyMax))
		end.code = response.StatusCode
		return errors.Join(fmt.Errorf("%s", body), err)
	}
	stream, started := json.NewDecoder(response.Body), !q.initial
	for !l.rec.Full() {
		var event struct {
			Type   string   `json:"type"`
			Object document `json:"object"`
		}
		if err := stream.Decode(&event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			end.code = event.Object.Code
			return errors.New(event.Object.Message)
		}
		seen := history.Event{At: l.rec.Now(), Type: event.Type, RV: event.Object.version(), Value: event.Object.value()}
		if event.Type == "BOOKMARK" {
			seen.Last = event.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true"
		} else {
			seen.Key = q.resource.key(event.Object.Metadata.Name)
		}
		l.rec.Saw(end.id, seen)
		l.saw(seen.RV)
		if started = started || seen.Last; started {
			end.last = seen.RV
		}
		if q.at != nil && started {
			q.at(end.id, end.last)
		}
		if q.slow != nil && !sleep(ctx, time.Duration(q.slow.Int64N(int64(readPauseMax)))) {
			return ctx.Err()
		}
	}
	return errors.New("the recorder is full")
}

// audit watches all of a resource on one node from the beginning to the end, as an informer does: where
// it is cut, it goes on, and where it cannot, it starts anew.
type audit struct {
	l        *Load
	node     int
	resource *resource
	id, last atomic.Uint64 // of the watch that is open, and its version
}

func (a *audit) run(ctx context.Context) {
	end := ended{}
	for ctx.Err() == nil && !a.l.rec.Full() {
		q := request{name: "audit", node: a.node, resource: a.resource, from: end.last, initial: end.last == 0, resumes: end.id}
		q.at = func(id, version uint64) { a.last.Store(version); a.id.Store(id) }
		end = a.l.watch(ctx, q)
		a.id.Store(0)
		if end.code == http.StatusGone {
			end.last = 0
		}
		sleep(ctx, watchRetry)
	}
}

// drain gives the audits the time to come to the last write. Each that was open all that time, and has
// not, is owed it.
func (l *Load) drain() {
	opened := make(map[*audit]uint64)
	for _, a := range l.audits {
		opened[a] = a.id.Load()
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Grace)
	defer cancel()
	for l.behind() && sleep(ctx, drainPause) {
	}
	for _, a := range l.audits {
		if id := a.id.Load(); id != 0 && id == opened[a] {
			l.rec.Owe(id, l.acked[a.resource.name].Load())
		}
	}
}

func (l *Load) behind() bool {
	for _, a := range l.audits {
		if a.last.Load() < l.acked[a.resource.name].Load() {
			return true
		}
	}
	return false
}

// roam resumes a watch on the next node again and again.
func (l *Load) roam(ctx context.Context, r *resource, rng *rand.Rand) {
	end := ended{}
	for i := 0; ctx.Err() == nil && !l.rec.Full(); i++ {
		q := request{name: "roams", node: i % len(l.clients), resource: r, from: end.last, initial: end.last == 0, resumes: end.id}
		end = l.lives(ctx, q, rng)
		if end.code == http.StatusGone {
			end.last = 0
		}
	}
}

// stray opens watches at past, present and future versions, of one object or all, and reads some slowly.
func (l *Load) stray(ctx context.Context, r *resource, rng *rand.Rand) {
	for ctx.Err() == nil && !l.rec.Full() {
		q := request{name: "strays", node: rng.IntN(len(l.clients)), resource: r}
		if rng.IntN(2) == 0 {
			epoch := time.Duration(l.rec.Now()) / l.cfg.Epoch
			q.key = fmt.Sprintf("hot-%d-%d", epoch, rng.IntN(l.cfg.Hot))
		}
		if rng.IntN(3) == 0 {
			q.slow = rng
		}
		if q.initial = rng.IntN(4) == 0; !q.initial {
			q.from = uint64(max(1, int64(l.latest.Load())+rng.Int64N(400)-300))
		}
		l.lives(ctx, q, rng)
	}
}

// lives makes a watch that ends after a while.
func (l *Load) lives(ctx context.Context, q request, rng *rand.Rand) ended {
	live, cancel := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(liveMax))))
	defer cancel()
	end := l.watch(live, q)
	if live.Err() == nil {
		sleep(ctx, watchRetry)
	}
	return end
}
