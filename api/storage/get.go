package storage

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// Get implements storage.Interface.
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	view, err := s.atLeast(ctx, opts.ResourceVersion)
	if err != nil {
		return err
	}
	entry, ok := view.Get(key)
	switch {
	case ok:
		return s.answer(ctx, out, entry, entry.ModIndex)
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	default:
		return storage.NewKeyNotFoundError(key, 0)
	}
}

// answer is fill, but for a result that is sent as it is, at version index: that is not copied.
func (s *Store) answer(ctx context.Context, out runtime.Object, entry *fsm.Entry, index uint64) error {
	a := answerIn(ctx)
	if a == nil {
		return s.fill(out, entry)
	}
	obj := s.objectOf(entry)
	if index != entry.ModIndex {
		obj = obj.asOf(index)
	}
	a.set(out, obj)
	if a.only && s.asSent(entry) {
		return nil
	}
	decoded, err := s.decodedOf(entry)
	if err != nil {
		return storage.NewInternalError(err)
	}
	return assign(out, decoded)
}

// fill sets out to a copy of what the entry holds.
func (s *Store) fill(out runtime.Object, entry *fsm.Entry) error {
	obj, err := s.objectOf(entry).copy()
	if err != nil {
		return storage.NewInternalError(err)
	}
	return assign(out, obj)
}

// assign sets *out to *from; both are pointers to the same struct type.
func assign(out, from runtime.Object) error {
	dst, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	src := reflect.ValueOf(from).Elem()
	if src.Type() != dst.Type() {
		return fmt.Errorf("stored object is a %s, not a %s", src.Type(), dst.Type())
	}
	dst.Set(src)
	return nil
}
