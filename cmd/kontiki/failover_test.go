package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/cluster"
)

// TestLeaderCrash kills the leader three times while writers on all nodes
// create and update leases and watchers follow them. Nothing that was
// acknowledged is lost, nothing is applied twice, and a watcher who goes on at
// another node where it stood gets every version, in order and once.
func TestLeaderCrash(t *testing.T) {
	c := newCluster(t, 3, nil)
	w := startWork(c, false)
	for round := range 3 {
		w.advance(40)
		leader := c.leader()
		c.crash(leader)
		w.advance(40)
		t.Logf("round %d: node %d was killed, node %d leads", round, leader, c.leader())
		c.start(leader)
		c.waitReady()
	}
	w.advance(40)
	w.finish()
	c.checkEqual()
}

// TestRestarts stops nodes in good order and at once, one and all of them,
// under the same work, on data with snapshots of it.
func TestRestarts(t *testing.T) {
	c := newCluster(t, 3, testTuning(func(tuning *cluster.Tuning) {
		tuning.SnapshotThreshold, tuning.TrailingLogs = 64, 16
		tuning.SnapshotInterval = 20 * time.Millisecond
	}))
	w := startWork(c, true)
	w.advance(60)
	for i := range c.nodes {
		c.stop(i)
		w.advance(100) // more than TrailingLogs: it comes back by a snapshot
		c.start(i)
		c.waitReady()
	}
	w.advance(40)
	w.pause()
	for i := range c.nodes {
		if i == 1 {
			c.crash(i)
		} else {
			c.stop(i)
		}
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.waitReady()
	w.resume()
	w.advance(40)
	w.finish()
	c.checkEqual()
	for i, n := range c.nodes {
		if snapshots, err := filepath.Glob(filepath.Join(n.cfg.DataDir, "raft", "snapshots", "*", "meta.json")); len(snapshots) == 0 {
			t.Errorf("node %d has taken no snapshot: %v", i, err)
		}
	}
}

const (
	writers      = 6
	leasesToUse  = 12
	watchers     = 3
	watchWindow  = 30 // seconds of a request, so that none hangs on a dead node
	workTopic    = "work"
	writeTimeout = 5 * time.Second
)

// work is writers and watchers on a cluster whose nodes come and go. A writer
// or watcher uses one node until that fails, then the next.
type work struct {
	c       *testCluster
	configs []*rest.Config
	// mayExpire: nodes restart from snapshots, and may all have forgotten the
	// version at which a watcher stands.
	mayExpire bool
	seed      uint64
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup
	gate      sync.RWMutex // held to pause writers

	mu      sync.Mutex
	acked   map[uint64]string // guarded by mu; version: what was written with it
	unknown map[string]bool   // guarded by mu; writes whose outcome is not known
	failure error             // guarded by mu
	logs    []*watchLog
}

// watchLog is what one watcher has seen.
type watchLog struct {
	mu      sync.Mutex
	events  []seen // guarded by mu
	watches int    // guarded by mu; how many it took
	expired bool   // guarded by mu; it lost the thread
}

type seen struct {
	version uint64
	kind    watch.EventType
	name    string
	mark    string // what was written
}

func startWork(c *testCluster, mayExpire bool) *work {
	w := &work{c: c, mayExpire: mayExpire, seed: rand.Uint64(), acked: map[uint64]string{}, unknown: map[string]bool{}}
	c.t.Logf("seed %d", w.seed)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for i := range c.nodes {
		config := c.clientConfig(i)
		config.Timeout = slow(writeTimeout)
		w.configs = append(w.configs, config)
	}
	client := kubernetes.NewForConfigOrDie(w.configs[0])
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workTopic}}
	if _, err := client.CoreV1().Namespaces().Create(w.ctx, namespace, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	list, err := client.CoordinationV1().Leases(workTopic).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range watchers {
		log := &watchLog{}
		w.logs = append(w.logs, log)
		w.running.Go(func() { w.follow(i, parse(list.ResourceVersion), log) })
	}
	for i := range writers {
		w.running.Go(func() { w.write(i) })
	}
	c.t.Cleanup(func() { w.cancel(); w.running.Wait() })
	return w
}

// advance waits until so many more writes have been acknowledged.
func (w *work) advance(more int) {
	w.c.t.Helper()
	goal := w.count() + more
	until(w.c.t, func() error {
		if err := w.failed(); err != nil {
			w.c.t.Fatal(err)
		}
		if n := w.count(); n < goal {
			return fmt.Errorf("%d of %d writes are acknowledged", n, goal)
		}
		return nil
	})
}

func (w *work) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *work) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

func (w *work) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

func (w *work) pause()  { w.gate.Lock() }
func (w *work) resume() { w.gate.Unlock() }

// write creates, updates and deletes leases, each write with a mark of its own.
// An update is of the version that the writer has read, so two writers of one
// lease conflict and one of them loses.
func (w *work) write(writer int) {
	luck := rand.New(rand.NewPCG(w.seed, uint64(writer)))
	node := writer % len(w.configs)
	for n, last := 0, uint64(0); w.ctx.Err() == nil; n++ {
		w.gate.RLock()
		name := fmt.Sprintf("lease-%d", luck.IntN(leasesToUse))
		mark := fmt.Sprintf("w%d-%d", writer, n)
		version, err := w.writeOnce(node, name, mark, luck)
		if err == nil && version <= last {
			w.fail("version %d of %s %s comes after %d", version, name, mark, last)
		}
		if err == nil {
			last = version
		}
		if !w.written(version, name+" "+mark, err) {
			node = (node + 1) % len(w.configs)
		}
		w.gate.RUnlock()
	}
}

// written notes what became of a write. It returns false if that is not known.
func (w *work) written(version uint64, what string, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		if other, ok := w.acked[version]; ok && w.failure == nil {
			w.failure = fmt.Errorf("version %d was given to %s and to %s", version, other, what)
		}
		w.acked[version] = what
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// Another writer was first. That is an answer: nothing was written.
	default:
		w.unknown[what] = true
		return false
	}
	return true
}

func (w *work) writeOnce(node int, name, mark string, luck *rand.Rand) (uint64, error) {
	client := kubernetes.NewForConfigOrDie(w.configs[node]).CoordinationV1().Leases(workTopic)
	lease, err := client.Get(w.ctx, name, metav1.GetOptions{})
	exists := err == nil
	if apierrors.IsNotFound(err) {
		lease.Name, err = name, nil
	}
	if err != nil {
		return 0, err
	}
	lease.Annotations = map[string]string{"mark": mark}
	if exists && luck.IntN(10) == 0 {
		// The deletion itself has no version that we are told. Its event has, and
		// the object must then be gone or made anew.
		precondition := metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
		if err := client.Delete(w.ctx, name, metav1.DeleteOptions{Preconditions: &precondition}); err != nil {
			return 0, err
		}
		lease.ObjectMeta = metav1.ObjectMeta{Name: name, Annotations: lease.Annotations}
		exists = false
	}
	if exists {
		lease, err = client.Update(w.ctx, lease, metav1.UpdateOptions{})
	} else {
		lease, err = client.Create(w.ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return 0, err
	}
	return version(lease), nil
}

// follow watches from a version on, at one node until that one ends the watch,
// then at the next one from the last version seen. Where no node has that
// version any more it ends, if that is allowed.
func (w *work) follow(node int, from uint64, log *watchLog) {
	for expired := 0; w.ctx.Err() == nil; node++ {
		before := from
		err := w.followAt(node%len(w.configs), &from, log)
		switch {
		case from != before:
			expired = 0
		case apierrors.IsResourceExpired(err):
			expired++
		}
		if expired >= len(w.configs) {
			if !w.mayExpire {
				w.fail("version %d is gone at all nodes: %w", from, err)
			}
			log.mu.Lock()
			log.expired = true
			log.mu.Unlock()
			return
		}
	}
}

func (w *work) followAt(node int, from *uint64, log *watchLog) error {
	config := rest.CopyConfig(w.configs[node])
	config.Timeout = 0
	stream, err := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(workTopic).Watch(w.ctx, metav1.ListOptions{
		ResourceVersion: fmt.Sprint(*from), TimeoutSeconds: ptr(int64(watchWindow)), AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	log.mu.Lock()
	log.watches++
	log.mu.Unlock()
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		*from = version(event.Object)
		if event.Type != watch.Bookmark {
			log.add(event)
		}
	}
	return nil
}

func (l *watchLog) add(event watch.Event) {
	m := metaOf(event.Object)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, seen{version(event.Object), event.Type, m.GetName(), m.GetAnnotations()["mark"]})
}

// finish ends the writers, lets the watchers come to the end, and checks what
// they have seen.
func (w *work) finish() {
	t := w.c.t
	t.Helper()
	w.pause()
	defer w.resume()
	list, err := kubernetes.NewForConfigOrDie(w.configs[0]).CoordinationV1().Leases(workTopic).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := slices.Max(slices.Collect(maps.Keys(w.acked)))
	for _, lease := range list.Items {
		last = max(last, version(&lease))
	}
	for _, log := range w.logs {
		until(t, func() error { return errors.Join(w.failed(), log.reached(last)) })
	}
	w.cancel()
	for i, log := range w.logs {
		log.mu.Lock()
		defer log.mu.Unlock()
		if err := w.check(log, list.Items); err != nil {
			t.Errorf("watcher %d: %v", i, err)
		}
		if common := min(len(log.events), len(w.logs[0].events)); !slices.Equal(log.events[:common], w.logs[0].events[:common]) {
			t.Errorf("watchers 0 and %d have seen different things", i)
		}
		t.Logf("watcher %d: %d events over %d watches, expired: %t", i, len(log.events), log.watches, log.expired)
	}
	t.Logf("%d writes acknowledged, outcome of %d unknown", len(w.acked), len(w.unknown))
}

func (l *watchLog) reached(version uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.events); l.expired {
		return nil
	} else if n == 0 || l.events[n-1].version < version {
		return fmt.Errorf("a watcher has %d events, not yet version %d", n, version)
	}
	return nil
}

// check replays the events: versions grow; each mark is written once, and only
// if it was acknowledged or its outcome is unknown; each acknowledged one is
// there; what is left is what the list has.
func (w *work) check(log *watchLog, final []coordinationv1.Lease) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, marks, versions := map[string]seen{}, map[string]bool{}, map[uint64]string{}
	last := uint64(0)
	for _, e := range log.events {
		if e.version <= last {
			return fmt.Errorf("version %d comes after %d", e.version, last)
		}
		last = e.version
		before, exists := state[e.name]
		what := e.name + " " + e.mark
		switch {
		case e.kind == watch.Deleted && exists && before.mark == e.mark:
			delete(state, e.name)
			continue
		case e.kind == watch.Deleted, exists != (e.kind == watch.Modified):
			return fmt.Errorf("%s of %s at %d, before it was %+v", e.kind, what, e.version, before)
		case marks[what]:
			return fmt.Errorf("%s was applied twice", what)
		case w.acked[e.version] != what && !w.unknown[what]:
			return fmt.Errorf("%s at %d was never written; acknowledged is %q", what, e.version, w.acked[e.version])
		}
		state[e.name], marks[what], versions[e.version] = e, true, what
	}
	for version, what := range w.acked {
		if log.expired && version > last {
			continue
		}
		if versions[version] != what {
			return fmt.Errorf("%s was acknowledged as version %d, which is %q", what, version, versions[version])
		}
	}
	if log.expired {
		return nil
	}
	for _, lease := range final {
		if s := state[lease.Name]; s.version != version(&lease) || s.mark != lease.Annotations["mark"] {
			return fmt.Errorf("lease %s is at %s, the events end with %+v", lease.Name, lease.ResourceVersion, s)
		}
		delete(state, lease.Name)
	}
	if len(state) > 0 {
		return fmt.Errorf("not in the list: %v", state)
	}
	return nil
}

// TestStopAtOnce stops a node in the moment in which it begins to lead and its
// duties begin to ask the API, which is then already closing. None of them may hold it up.
func TestStopAtOnce(t *testing.T) {
	c := &testCluster{t: t, dir: t.TempDir(), logs: &testLogs{t: t}}
	t.Cleanup(c.close)
	c.nodes = []*testNode{{cfg: c.config(0, 1)}}
	for round := range 10 {
		c.start(0)
		until(t, func() error {
			if !c.nodes[0].Node.Status().Presiding {
				return errors.New("the node does not lead yet")
			}
			return nil
		})
		start := time.Now()
		if round%2 == 0 {
			c.stop(0)
		} else {
			c.crash(0)
		}
		if took := time.Since(start); took > slow(5*time.Second) {
			t.Errorf("it took %s to stop", took)
		}
	}
}
