package storage

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/cluster"
	"kontiki/fsm"
)

// GuaranteedUpdate implements storage.Interface. A suggestion of what the
// object may be is not used: this node's own view is at least as good.
func (s *Store) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object,
) error {
	key, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	now, err := s.start(ctx, key)
	if err != nil {
		return err
	}
	for {
		if now.entry == nil && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		cmd, updated, err := s.nextCommand(now, preconditions, tryUpdate)
		if err != nil {
			if err := now.recheck(ctx, err); err != nil {
				return err
			}
			continue
		}
		if isTerminating(updated) {
			ctx = cluster.MakesRoom(ctx)
		}
		done, err := s.commit(ctx, now, cmd, updated, destination)
		if done || err != nil {
			return err
		}
	}
}

// nextCommand lets the caller make the new object of the present one.
func (s *Store) nextCommand(now *current, preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc) (cmd fsm.Command, updated runtime.Object, err error) {
	obj, err := now.object()
	if err != nil {
		return fsm.Command{}, nil, err
	}
	if err := preconditions.Check(now.key, obj); err != nil {
		return fsm.Command{}, nil, err
	}
	updated, ttl, err := tryUpdate(obj, storage.ResponseMeta{ResourceVersion: now.index()})
	if err != nil {
		return fsm.Command{}, nil, err
	}
	value, err := s.encode(updated)
	if err != nil {
		return fsm.Command{}, nil, err
	}
	cmd = fsm.Command{Op: fsm.OpUpdate, Key: now.key, Expect: now.index(), Value: value}
	if now.entry == nil {
		cmd.Op = fsm.OpCreate
	}
	if ttl != nil {
		cmd.Expires = s.expires(*ttl)
	}
	return cmd, updated, nil
}

// isTerminating says whether an object is on its way to be deleted.
func isTerminating(obj runtime.Object) bool {
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetDeletionTimestamp() != nil
}

// commit proposes the command. It is done unless somebody else was faster; then
// now holds what they wrote.
func (s *Store) commit(ctx context.Context, now *current, cmd fsm.Command, updated, destination runtime.Object) (done bool, err error) {
	if now.entry != nil && bytes.Equal(cmd.Value, now.entry.Value) {
		return s.unchanged(ctx, now, destination)
	}
	result, err := s.propose(ctx, cmd)
	if err != nil {
		return false, err
	}
	switch result.Code {
	case fsm.OK:
		return true, s.written(ctx, destination, updated, cmd.Key, cmd.Value, result.Index)
	case fsm.Conflict, fsm.Exists, fsm.NotFound:
		return false, now.lost(ctx, result)
	default:
		return false, unexpected(cmd.Key, result)
	}
}

// unchanged answers an update that changes nothing: no entry is written, and
// the version stays. That must be true of the latest object, not of a stale one.
func (s *Store) unchanged(ctx context.Context, now *current, destination runtime.Object) (done bool, err error) {
	if !now.latest {
		before := now.index()
		if err := now.refresh(ctx); err != nil {
			return false, err
		}
		if now.index() != before {
			return false, nil
		}
	}
	return true, s.answer(ctx, destination, now.entry, now.index())
}
