package storage

import (
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// matcher says which entries the selectors of a list or watch let through. It decodes an object
// only if it must: what selects nothing, and what selects by a trigger alone, as a kubelet does, is
// found out from what is stored.
type matcher struct {
	store *Store
	pred  storage.SelectionPredicate
	all   bool   // everything is let through
	path  Path   // to the one string that is selected by; nil if that is not all
	value string // what it must be
}

func (s *Store) matcherOf(pred storage.SelectionPredicate) matcher {
	m := matcher{store: s, pred: pred, all: pred.Empty()}
	if pred.Field == nil || pred.Label == nil || !pred.Label.Empty() || len(pred.Field.Requirements()) != 1 {
		return m
	}
	for field, path := range s.TriggerPaths {
		if value, ok := pred.Field.RequiresExactMatch(field); ok {
			m.path, m.value = path, value
		}
	}
	return m
}

// lets says whether the selectors let the entry's object through. They do not if its attributes
// cannot be read, as upstream has it; it is an error if the object cannot be decoded.
func (m matcher) lets(entry *fsm.Entry) (bool, error) {
	if m.store.asSent(entry) { // by this release, which can decode it
		if m.all {
			return true, nil
		}
		if value, ok := m.path.In(entry.Value); ok {
			return value == m.value, nil
		}
	}
	decoded, err := m.store.decodedOf(entry)
	if err != nil {
		return false, storage.NewInternalError(err)
	}
	matched, err := m.pred.Matches(decoded)
	return matched && err == nil, nil
}
