package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kontiki/scripts/chaos/history"
)

// version is what one write made of an object.
type version struct {
	key     string
	rv      uint64
	value   string // empty for a deletion
	deleted bool
	kind    string // the event's type, if a watch showed it
	by      uint64 // the first call or watch that told of it
	seen    bool   // by somebody besides the writer
}

// story is what happened, as far as anybody can tell.
type story struct {
	*history.History
	final     Final
	lists     []history.Op            // all that succeeded, also the final ones
	keys      map[string][]*version   // in order
	versions  map[uint64]*version     // by version
	values    map[string][]*version   // by what was written
	writers   map[string]*history.Op  // by what they wrote
	deletions map[string][]history.Op // that may have happened, by key
	covered   map[string][]span       // by resource: what some watch of all of it has seen
	last      map[string]uint64       // version of a resource
	conflicts []Finding
}

// span is the versions after from, up to and with to.
type span struct{ from, to uint64 }

func tell(h *history.History, final Final) *story {
	s := &story{
		History: h, final: final,
		keys: make(map[string][]*version), versions: make(map[uint64]*version), values: make(map[string][]*version),
		writers: make(map[string]*history.Op), deletions: make(map[string][]history.Op), covered: make(map[string][]span),
		last: make(map[string]uint64),
	}
	for i := range h.Ops {
		s.hear(&h.Ops[i])
	}
	for i := range final.Lists {
		s.hear(&final.Lists[i])
	}
	for i := range h.Watches {
		s.follow(&h.Watches[i])
	}
	for key, versions := range s.keys {
		slices.SortFunc(versions, func(a, b *version) int { return cmp.Compare(a.rv, b.rv) })
		s.keys[key] = versions
	}
	for resource, spans := range s.covered {
		s.covered[resource] = merge(spans)
	}
	return s
}

// hear takes in what a call tells.
func (s *story) hear(op *history.Op) {
	if op.Writes() && op.Kind != history.Delete {
		s.writers[op.Value] = op
	}
	if op.Kind == history.Delete && op.Outcome != history.Refused {
		s.deletions[op.Key] = append(s.deletions[op.Key], *op)
	}
	if op.Outcome != history.OK {
		return
	}
	switch op.Kind {
	case history.List:
		s.lists = append(s.lists, *op)
		for _, item := range op.Items {
			s.note(version{key: item.Key, rv: item.RV, value: item.Value, by: op.ID, seen: true})
		}
	case history.Get:
		s.note(version{key: op.Key, rv: op.RV, value: op.Value, by: op.ID, seen: true})
	case history.Delete:
		s.note(version{key: op.Key, rv: op.RV, deleted: true, by: op.ID})
	default:
		s.note(version{key: op.Key, rv: op.RV, value: op.Value, by: op.ID})
	}
}

// follow takes in what a watch tells.
func (s *story) follow(w *history.Watch) {
	from, last, started := w.From, w.From, !w.Initial
	for _, e := range w.Events {
		switch {
		case e.Type == "BOOKMARK" && e.Last && !started:
			from, last, started = e.RV, e.RV, true
		case e.Type == "BOOKMARK":
			last = max(last, e.RV)
		case e.Type == "DELETED":
			s.note(version{key: e.Key, rv: e.RV, deleted: true, kind: e.Type, by: w.ID, seen: true})
			last = max(last, e.RV)
		default:
			kind := e.Type
			if !started {
				kind = "" // whatever made it, it is ADDED here
			}
			s.note(version{key: e.Key, rv: e.RV, value: e.Value, kind: kind, by: w.ID, seen: true})
			last = max(last, e.RV)
		}
	}
	if started && w.Key == "" && last > from {
		s.covered[w.Resource] = append(s.covered[w.Resource], span{from, last})
	}
}

// note adds a version, or compares it with what is known of it.
func (s *story) note(v version) {
	if v.rv == 0 {
		return
	}
	known := s.versions[v.rv]
	if known == nil {
		s.versions[v.rv] = &v
		s.last[resourceOf(v.key)] = max(s.last[resourceOf(v.key)], v.rv)
		s.keys[v.key] = append(s.keys[v.key], &v)
		if !v.deleted {
			s.values[v.value] = append(s.values[v.value], &v)
		}
		return
	}
	known.seen = known.seen || v.seen
	known.kind = cmp.Or(known.kind, v.kind)
	if known.key != v.key || known.deleted != v.deleted || known.value != v.value {
		s.conflicts = append(s.conflicts, Finding{
			Promise: OneWriteAVersion, Key: v.key, IDs: []uint64{known.by, v.by},
			Detail: fmt.Sprintf("version %d is both %s and %s", v.rv, known, &v),
		})
	}
}

func (v *version) String() string {
	if v.deleted {
		return "the deletion of " + v.key
	}
	return fmt.Sprintf("%s = %q", v.key, v.value)
}

// at returns the last version of a key that is known up to rv, nil if there is none.
func (s *story) at(key string, rv uint64) *version {
	versions := s.keys[key]
	i, found := slices.BinarySearchFunc(versions, rv, func(v *version, rv uint64) int { return cmp.Compare(v.rv, rv) })
	if found {
		return versions[i]
	}
	if i == 0 {
		return nil
	}
	return versions[i-1]
}

// after returns the first version of a key that is known after rv, nil if there is none.
func (s *story) after(key string, rv uint64) *version {
	versions := s.keys[key]
	i, found := slices.BinarySearchFunc(versions, rv, func(v *version, rv uint64) int { return cmp.Compare(v.rv, rv) })
	if found {
		i++
	}
	if i == len(versions) {
		return nil
	}
	return versions[i]
}

// present says why a state at or after the version low cannot show a key at version rv, or returns nil.
func (s *story) present(key string, rv, low uint64) *version {
	if next := s.after(key, rv); next != nil && next.rv <= low {
		return next
	}
	return nil
}

// absent says why a state at or after the version low cannot lack a key: what was written and not deleted
// by a call that began before the time until. High is the state's own version, 0 if that is not known.
func (s *story) absent(key string, low, high uint64, until int64) *version {
	last := s.at(key, low)
	if last == nil || last.deleted {
		return nil
	}
	if high > 0 && s.covers(resourceOf(key), last.rv, high) {
		if next := s.after(key, last.rv); next == nil || next.rv > high {
			return last // every event in between is known, and none deletes it
		}
	}
	written := int64(0)
	if writer := s.writers[last.value]; writer != nil {
		written = writer.Call
	}
	for _, d := range s.deletions[key] {
		late := d.Outcome == history.Unknown || d.Return >= written
		if d.Call < until && late && (d.RV == 0 || d.RV > last.rv) {
			return nil
		}
	}
	return last
}

// covers tells whether a watch of the whole resource has seen what came after from, up to the version to.
func (s *story) covers(resource string, from, to uint64) bool {
	return slices.ContainsFunc(s.covered[resource], func(c span) bool { return c.from <= from && to <= c.to })
}

// merge joins spans that touch.
func merge(spans []span) (merged []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, next := range spans {
		if n := len(merged); n > 0 && next.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, next.to)
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

func resourceOf(key string) string {
	resource, _, _ := strings.Cut(key, "/")
	return resource
}
