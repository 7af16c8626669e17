package storage

import (
	"strings"

	"kontiki/fsm"
)

// cursor is a watch's place in the feed: among all events of the kind, or among those that it
// selects.
type cursor interface {
	TryNext() ([]fsm.Event, error)
	Wait() <-chan struct{}
	Position() uint64
	Close()
}

// subscribe finds the watch's cursor. A watch of one object, of what has one value of a
// trigger, or of one namespace, is woken for nothing else: there are as many kubelets as
// nodes, and an event is for one of them.
func (s *Store) subscribe(w *watcher) (cursor, error) {
	if value := s.valueOf(w); value != "" {
		return s.Feed.Select(s.topic, w.from, value, s.valuesOf)
	}
	return s.Feed.Subscribe(s.topic, w.from)
}

// valueOf is what all events that the watch may show have among their values, or "".
func (s *Store) valueOf(w *watcher) string {
	if !w.recursive {
		return w.key
	}
	if w.pred.Field != nil {
		for field := range s.Triggers {
			if value, ok := w.pred.Field.RequiresExactMatch(field); ok {
				return field + "=" + value
			}
		}
	}
	if s.namespaceOf(w.key) == w.key {
		return w.key
	}
	return ""
}

// namespaceOf is the beginning of a key that says in which namespace it is, or "".
func (s *Store) namespaceOf(key string) string {
	if end := strings.IndexByte(key[len(s.topic):], '/'); end >= 0 {
		return key[:len(s.topic)+end+1]
	}
	return ""
}

// valuesOf is by what watches may select the event: its key, its namespace, and what its
// triggers were before and are now. With an object whose trigger cannot be read the event is for
// everybody, to learn of it.
func (s *Store) valuesOf(event fsm.Event) []string {
	values := []string{event.Key()}
	if namespace := s.namespaceOf(event.Key()); namespace != "" {
		values = append(values, namespace)
	}
	for field := range s.Triggers {
		last := ""
		for _, entry := range []*fsm.Entry{event.Old, event.New} {
			if entry == nil {
				continue
			}
			value, err := s.triggered(field, entry)
			if err != nil {
				return nil
			}
			if value = field + "=" + value; value != last {
				values, last = append(values, value), value
			}
		}
	}
	return values
}

// triggered is what a trigger computes of an entry's object. Every node asks that of every event,
// be there one watch that selects or thousands, so that it reads no more of the object than it must.
func (s *Store) triggered(field string, entry *fsm.Entry) (string, error) {
	if value, ok := s.TriggerPaths[field].In(entry.Value); ok {
		return value, nil
	}
	obj, err := s.decodedOf(entry)
	if err != nil {
		return "", err
	}
	return s.Triggers[field](obj), nil
}
