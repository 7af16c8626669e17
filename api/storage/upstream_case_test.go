package storage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/api/storage"
	"kontiki/fsm"
)

// upstreamCase is what one case gets: a part of the keys of its own.
type upstreamCase struct {
	ctx   context.Context
	t     *testing.T
	node  *node
	root  string
	feed  *replaceable
	store upstream.Interface
}

func newUpstreamCase(t *testing.T, n *node, root string) *upstreamCase {
	c := &upstreamCase{ctx: context.Background(), t: t, node: n, root: root, feed: &replaceable{hub: n.hub}}
	c.store = podStore(t, c.backend(), root, codec)
	return c
}

func (c *upstreamCase) backend() storage.Backend {
	backend := c.node.backend()
	backend.Feed = c.feed
	return backend
}

// uncached is the store as one that upstream would serve from etcd.
func (c *upstreamCase) uncached() upstream.Interface {
	return podStore(c.t, c.backend(), c.root, codec, uncached)
}

// on is the case on another part of the keys, for a case that runs twice.
func (c *upstreamCase) on(t *testing.T) *upstreamCase {
	return newUpstreamCase(t, c.node, c.root+"again")
}

func (c *upstreamCase) run(f any) {
	switch f := f.(type) {
	case plain:
		f(c.ctx, c.t, c.store)
	case func(*upstreamCase):
		f(c)
	default:
		c.t.Fatalf("a case is a %T", f)
	}
}

// gate is held by cases that change a feature gate, which is global. It is given
// back after the case's own clean-up.
var gate sync.Mutex

func gated(f plain) func(*upstreamCase) {
	return func(c *upstreamCase) {
		gate.Lock()
		c.t.Cleanup(gate.Unlock)
		f(c.ctx, c.t, c.store)
	}
}

// storesNoVersion is upstream's invariant: the version of an object is not in
// its stored bytes.
func (c *upstreamCase) storesNoVersion(_ context.Context, t *testing.T, key string) {
	entry, ok := c.node.machine.View().Get(c.root + key)
	if !ok {
		t.Fatalf("nothing is stored at %s", key)
	}
	value := strings.TrimPrefix(string(entry.Value), "test!")
	decoded, err := runtime.Decode(codec, []byte(value))
	if err != nil {
		t.Fatalf("stored at %s: %v", key, err)
	}
	if version := decoded.(*example.Pod).ResourceVersion; version != "" {
		t.Errorf("stored with version %q", version)
	}
}

// increaseRV makes a version that is not of the case's objects.
func (c *upstreamCase) increaseRV(ctx context.Context, t *testing.T) int64 {
	cmd := fsm.Command{Op: fsm.OpCreate, Key: fmt.Sprintf("/other/things%s/%d", c.root, c.node.machine.Index()), Value: []byte("x")}
	result, err := c.node.cluster.Propose(ctx, cmd)
	if err != nil || result.Code != fsm.OK {
		t.Fatalf("increase the version: %s, %v", result.Code, err)
	}
	return int64(result.Index)
}

// compact makes the case's feed that of a node which began with a snapshot of
// this version, as one does that was away for long. Compacting etcd is a write,
// and the suite counts it.
func (c *upstreamCase) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	version, err := upstream.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	c.feed.replace(c.node.history.hubFrom(version))
	c.increaseRV(ctx, t)
}

// countsNothing stands for checks of how often etcd is read for a page. Here a
// page is one walk over the view.
func countsNothing(*testing.T, uint64, uint64) {}

// unhurried is for a case that makes 100 objects within the 3 s that its watch
// lasts: on a busy machine it may take longer, which is not what it is about.
type unhurried struct{ upstream.Interface }

func (s unhurried) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.Interface.Create(context.WithoutCancel(ctx), key, obj, out, ttl)
}

// expire does what the leader does for the cluster, for this case and faster.
func (c *upstreamCase) expire() {
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			c.node.machine.View().AscendExpires(time.Now().Unix(), func(entry *fsm.Entry) bool {
				c.node.cluster.Propose(ctx, fsm.Command{Op: fsm.OpDelete, Key: entry.Key, Expect: entry.ModIndex})
				return true
			})
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-done
	})
}
