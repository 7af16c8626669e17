package duties

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"kontiki/api/storage"
	"kontiki/fsm"
	"kontiki/watch"
)

// instantLog is a raft of one, without a disk: a command is applied at once.
type instantLog struct {
	machine *fsm.FSM
	hub     *watch.Hub
	before  func(fsm.Command) error // called ahead of each command, if set

	mu       sync.Mutex // held while a command is applied
	inFlight int        // guarded by mu
	most     int        // guarded by mu; that inFlight was
	results  []fsm.Code // guarded by mu
}

func newLog() *instantLog {
	l := &instantLog{hub: watch.NewHub(watch.Config{})}
	l.machine = fsm.New(l.hub)
	return l
}

func (l *instantLog) backend() storage.Backend {
	return storage.Backend{Proposer: l, State: l.machine, Feed: l.hub}
}

func (l *instantLog) Propose(_ context.Context, cmd fsm.Command) (fsm.Result, error) {
	l.count(1)
	defer l.count(-1)
	if l.before != nil {
		if err := l.before(cmd); err != nil {
			return fsm.Result{}, err
		}
	}
	return l.apply(cmd), nil
}

func (l *instantLog) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight += n
	l.most = max(l.most, l.inFlight)
}

func (l *instantLog) apply(cmd fsm.Command) fsm.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	cmd.Base = l.machine.Index()
	binary.BigEndian.PutUint64(cmd.ID[:], cmd.Base+1)
	result := l.machine.Apply(&raft.Log{Index: cmd.Base + 1, Type: raft.LogCommand, Data: cmd.Append(nil)}).(fsm.Result)
	l.results = append(l.results, result.Code)
	return result
}

func (l *instantLog) ReadIndex(context.Context) (uint64, error) { return l.machine.Index(), nil }

func keyOf(i int) string { return fmt.Sprintf("/core/events/default/%04d", i) }

// create makes entry i, which expires then.
func (l *instantLog) create(i int, expires int64) {
	l.apply(fsm.Command{Op: fsm.OpCreate, Key: keyOf(i), Value: []byte("v"), Expires: expires})
}

var quiet = hclog.NewNullLogger()

// TestExpireDue: what is due goes, in batches, and nothing else does; watchers
// see it go.
func TestExpireDue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := newLog()
	const now, entries = 1000, 3*expiryBatch + 7
	due := map[string]bool{}
	for i := range entries {
		expires := now - 5 + random.Int64N(11)
		if random.IntN(5) == 0 {
			expires = 0 // never
		}
		l.create(i, expires)
		due[keyOf(i)] = expires > 0 && expires <= now
	}
	cursor, err := l.hub.Subscribe("/core/events/", l.machine.Index())
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	expireDue(t.Context(), l.backend(), now, quiet)
	if l.most > expiryBatch {
		t.Errorf("%d deletions at a time, want at most %d", l.most, expiryBatch)
	}
	for key, isDue := range due {
		if _, ok := l.machine.View().Get(key); ok == isDue {
			t.Errorf("%s is there: %t, due: %t", key, ok, isDue)
		}
	}
	seen := 0
	for {
		events, err := cursor.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if seen++; e.New != nil || e.Old == nil || !due[e.Key()] {
				t.Errorf("event %+v of %s", e, e.Key())
			}
		}
	}
	if gone := entries - l.machine.View().Len(); seen != gone || gone == 0 {
		t.Errorf("%d events for %d deletions", seen, gone)
	}
}

// TestWrittenAgain: an entry that is written between being found and being
// deleted stays, as it now is.
func TestWrittenAgain(t *testing.T) {
	l := newLog()
	const now = 1000
	for i := range 3 {
		l.create(i, now)
	}
	var once sync.Once
	l.before = func(fsm.Command) error {
		once.Do(func() {
			l.apply(fsm.Command{Op: fsm.OpUpdate, Key: keyOf(1), Value: []byte("again"), Expires: now + 60})
		})
		return nil
	}
	expireDue(t.Context(), l.backend(), now, quiet)
	entry, ok := l.machine.View().Get(keyOf(1))
	if !ok || string(entry.Value) != "again" || l.machine.View().Len() != 1 {
		t.Errorf("%d entries are left, among them %v %t", l.machine.View().Len(), entry, ok)
	}
	conflicts := 0
	for _, code := range l.results {
		if code == fsm.Conflict {
			conflicts++
		}
	}
	if conflicts != 1 {
		t.Errorf("results %v, want one conflict", l.results)
	}
}

// TestExpireEntries runs the duty on a clock of its own: it comes back after
// its interval, also after a failure, and stops with its context.
func TestExpireEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		start := time.Now().Unix()
		var works atomic.Bool
		l.before = func(fsm.Command) error {
			if !works.Load() {
				return errors.New("no leader")
			}
			return nil
		}
		l.create(0, start)
		l.create(1, start+12)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			ExpireEntries(ctx, l.backend(), quiet)
		}()
		for _, step := range []struct {
			pass time.Duration
			left int
		}{{0, 2}, {expiryInterval, 1}, {expiryInterval, 1}, {expiryInterval, 0}} {
			time.Sleep(step.pass)
			synctest.Wait()
			works.Store(true)
			if left := l.machine.View().Len(); left != step.left {
				t.Errorf("after %d s %d entries are left, want %d", time.Now().Unix()-start, left, step.left)
			}
		}
		cancel()
		<-stopped
		l.create(2, start)
		time.Sleep(3 * expiryInterval)
		if l.machine.View().Len() != 1 {
			t.Error("a node that leads no more has deleted")
		}
	})
}
