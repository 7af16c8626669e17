package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// Delete implements storage.Interface.
func (s *Store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
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
		if now.entry == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := s.mayDelete(ctx, now, preconditions, validate); err != nil {
			if err := now.recheck(ctx, err); err != nil {
				return err
			}
			continue
		}
		result, err := s.propose(ctx, fsm.Command{Op: fsm.OpDelete, Key: key, Expect: now.index()})
		if err != nil {
			return err
		}
		switch result.Code {
		case fsm.OK:
			return s.deleted(ctx, out, now.entry, result.Index)
		case fsm.Conflict, fsm.NotFound:
			if err := now.lost(ctx, result); err != nil {
				return err
			}
		default:
			return unexpected(key, result)
		}
	}
}

func (s *Store) mayDelete(ctx context.Context, now *current, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc) error {
	obj, err := now.object()
	if err != nil {
		return err
	}
	if err := preconditions.Check(now.key, obj); err != nil {
		return err
	}
	return validate(ctx, obj)
}

// deleted sets out to the last state, at the version of its deletion.
func (s *Store) deleted(ctx context.Context, out runtime.Object, entry *fsm.Entry, index uint64) error {
	if err := s.answer(ctx, out, entry, index); err != nil {
		return err
	}
	return s.versioner.UpdateObject(out, index)
}
