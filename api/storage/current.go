package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// current is the entry that an update or a delete starts from. It is first
// taken from this node's view, which may be behind: the FSM decides by the
// entry's index, so a stale start costs a retry and never a wrong write. Only
// when the caller's own check fails on it must it be known to be the latest,
// since then there is no proposal that would tell.
type current struct {
	store  *Store
	key    string
	entry  *fsm.Entry // nil: there is none
	latest bool       // entry was the latest at some time after the call began
}

// start takes the entry from the local view if it is there.
func (s *Store) start(ctx context.Context, key string) (*current, error) {
	c := &current{store: s, key: key}
	if entry, ok := s.State.View().Get(key); ok {
		c.entry = entry
		return c, nil
	}
	return c, c.refresh(ctx)
}

// refresh takes the entry from a view that is up to date.
func (c *current) refresh(ctx context.Context) error {
	view, err := c.store.latest(ctx)
	if err != nil {
		return err
	}
	c.entry, _ = view.Get(c.key)
	c.latest = true
	return nil
}

// recheck is for a failed check: it returns nil if the entry was stale and has
// been replaced, so that the check is worth repeating, and the failure if not.
func (c *current) recheck(ctx context.Context, failure error) error {
	if c.latest {
		return failure
	}
	before := c.index()
	if err := c.refresh(ctx); err != nil {
		return err
	}
	if c.index() == before {
		return failure
	}
	return nil
}

// lost takes the entry that won from a proposal's result. The answer to a
// proposal that was repeated on the way names no winner; then it is looked up.
func (c *current) lost(ctx context.Context, result fsm.Result) error {
	if result.Current == nil && result.Code != fsm.NotFound {
		return c.refresh(ctx)
	}
	c.entry, c.latest = result.Current, true
	return nil
}

func (c *current) index() uint64 {
	if c.entry == nil {
		return 0
	}
	return c.entry.ModIndex
}

// object returns a copy of the present object, or a zero one if there is none.
func (c *current) object() (runtime.Object, error) {
	if c.entry == nil {
		return c.store.NewFunc(), nil
	}
	obj, err := c.store.objectOf(c.entry).copy()
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	return obj, nil
}
