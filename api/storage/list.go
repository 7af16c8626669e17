package storage

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// GetList implements storage.Interface. The items share what the decoded
// objects point to, as with upstream's watch cache: callers encode lists, they
// do not change them.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	prefix, err := s.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := itemsOf(listObj)
	if err != nil {
		return err
	}
	version, from, err := storage.ValidateListOptions(prefix, s.versioner, opts)
	if err != nil {
		return err
	}
	view, err := s.listView(ctx, uint64(version), from, prefix, opts)
	if err != nil {
		return err
	}
	page := page{matcher: s.matcherOf(opts.Predicate), limit: s.pageLimit(opts)}
	if err := page.collect(ctx, view, prefix, from, opts.Recursive); err != nil {
		return err
	}
	if answer := answerIn(ctx); answer != nil {
		answer.set(listObj, &sharedList{store: s, list: listObj, entries: page.entries})
		page.entries = nil
	}
	if err := s.assignItems(items, page.entries); err != nil {
		return storage.NewInternalError(err)
	}
	remaining := func() int64 { return int64(view.Count(prefix, from)) }
	return s.finishList(listObj, view.Index(), &page, prefix, remaining, opts)
}

// listView picks the view that a list is served from: an exact version for
// continue tokens and Exact matches, otherwise one that is fresh enough.
func (s *Store) listView(ctx context.Context, version uint64, from, prefix string, opts storage.ListOptions) (*fsm.View, error) {
	if version == 0 {
		resourceVersion := opts.ResourceVersion
		if from != "" { // a token that asks for the latest state
			resourceVersion = ""
		}
		return s.atLeast(ctx, resourceVersion)
	}
	view, err := s.exactly(ctx, version)
	switch {
	case !isExpired(err):
		return view, err
	case from == "":
		return nil, apierrors.NewResourceExpired(listExpired)
	}
	token, err := storage.EncodeContinue(from, prefix, -1)
	if err != nil {
		return nil, apierrors.NewResourceExpired(listExpired)
	}
	return nil, continueExpiredError(token)
}

// pageLimit is how many items the answer may have, 0 for all. Upstream's watch
// cache ignores a limit at resource version 0, and clients count on it.
func (s *Store) pageLimit(opts storage.ListOptions) int {
	if opts.Predicate.Limit <= 0 || opts.ResourceVersion == "0" && !s.Uncached {
		return 0
	}
	return int(opts.Predicate.Limit)
}

// page is the part of a list that one answer holds.
type page struct {
	matcher
	limit   int
	entries []*fsm.Entry
	lastKey string // of the last object taken
	more    bool   // there are keys after it
}

func (p *page) collect(ctx context.Context, view *fsm.View, prefix, from string, recursive bool) error {
	if !recursive {
		if entry, ok := view.Get(prefix); ok {
			return p.take(entry)
		}
		return nil
	}
	var failure error
	view.Ascend(prefix, from, func(entry *fsm.Entry) bool {
		if p.limit > 0 && len(p.entries) == p.limit {
			p.more = true
			return false
		}
		if failure = ctx.Err(); failure != nil {
			failure = storage.NewTimeoutError(entry.Key, "request did not complete within requested timeout")
			return false
		}
		failure = p.take(entry)
		return failure == nil
	})
	return failure
}

// take adds the entry's object if the selectors let it through.
func (p *page) take(entry *fsm.Entry) error {
	if ok, err := p.lets(entry); !ok {
		return err
	}
	p.entries = append(p.entries, entry)
	p.lastKey = entry.Key
	return nil
}

// assignItems sets a list's items; an empty list has an empty slice, not nil.
func (s *Store) assignItems(items reflect.Value, entries []*fsm.Entry) error {
	slice := reflect.MakeSlice(items.Type(), len(entries), len(entries))
	for i, entry := range entries {
		decoded, err := s.decodedOf(entry)
		if err != nil {
			return err
		}
		slice.Index(i).Set(reflect.ValueOf(decoded).Elem())
	}
	items.Set(slice)
	return nil
}

func (s *Store) finishList(listObj runtime.Object, index uint64, p *page, prefix string, remaining func() int64, opts storage.ListOptions) error {
	var count int64
	if p.more && opts.Predicate.Empty() {
		count = remaining()
	}
	token, left, err := storage.PrepareContinueToken(p.lastKey, prefix, int64(index), count, p.more, opts)
	if err != nil {
		return err
	}
	return s.versioner.UpdateList(listObj, index, token, left)
}

func itemsOf(listObj runtime.Object) (reflect.Value, error) {
	ptr, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil || items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("need ptr to slice: %v", err)
	}
	return items, nil
}
