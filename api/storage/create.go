package storage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// Create implements storage.Interface.
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	key, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if version, err := s.versioner.ObjectResourceVersion(obj); err == nil && version != 0 {
		return versionOnCreate{apierrors.NewBadRequest(storage.ErrResourceVersionSetOnCreate.Error())}
	}
	value, err := s.encode(obj)
	if err != nil {
		return err
	}
	result, err := s.propose(ctx, fsm.Command{Op: fsm.OpCreate, Key: key, Value: value, Expires: s.expires(ttl)})
	if err != nil {
		return err
	}
	switch result.Code {
	case fsm.OK:
		return s.written(ctx, out, obj, key, value, result.Index)
	case fsm.Exists:
		return storage.NewKeyExistsError(key, 0)
	default:
		return unexpected(key, result)
	}
}

// versionOnCreate is storage.ErrResourceVersionSetOnCreate as the client's
// mistake that it is; upstream answers 500.
type versionOnCreate struct{ *apierrors.StatusError }

// Is makes errors.Is find the storage error.
func (versionOnCreate) Is(target error) bool { return target == storage.ErrResourceVersionSetOnCreate }

// encode makes the bytes of a log entry of an object; the version is not in
// them, it is the entry's index.
func (s *Store) encode(obj runtime.Object) ([]byte, error) {
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("prepare object for storage: %w", err)
	}
	value, err := runtime.Encode(s.Codec, obj)
	return append(value, s.mark...), err
}

// expires is the time at which a ttl that starts now is over. It is computed
// here, by the proposer: no node reads a clock when it applies an entry.
func (s *Store) expires(ttl uint64) int64 {
	if ttl == 0 {
		return 0
	}
	return s.clock() + int64(ttl)
}

func (s *Store) propose(ctx context.Context, cmd fsm.Command) (fsm.Result, error) {
	result, err := s.Proposer.Propose(ctx, cmd)
	if err != nil {
		return fsm.Result{}, WriteError(err)
	}
	return result, nil
}

// written sets out, when there is one, to what a read of the entry just written
// gives. The entry is already applied here, so its object is made where the
// next reader finds it, unless somebody wrote again in between. For an answer it
// is not decoded: what was written is what registries look at.
func (s *Store) written(ctx context.Context, out, obj runtime.Object, key string, value []byte, index uint64) error {
	if out == nil {
		return nil
	}
	if entry, ok := s.State.View().Get(key); ok && entry.ModIndex == index {
		a := answerIn(ctx)
		if a == nil || !s.asSent(entry) {
			return s.answer(ctx, out, entry, index)
		}
		a.set(out, s.objectOf(entry))
		if err := assign(out, obj); err != nil {
			return err
		}
		return s.versioner.UpdateObject(out, index)
	}
	decoded, err := s.decode(value, index)
	if err != nil {
		return err
	}
	return assign(out, decoded)
}

// unexpected reports a result that the command cannot have.
func unexpected(key string, result fsm.Result) error {
	return storage.NewInternalError(fmt.Errorf("%s: unexpected result %s at index %d", key, result.Code, result.Index))
}
