package check

import (
	"fmt"

	"kontiki/scripts/chaos/history"
)

// stream is a watch without its initial events: what came after the version from.
type stream struct {
	*history.Watch
	from    uint64
	initial []history.Event // before the bookmark that ends them
	events  []history.Event // bookmarks among them
	started bool
}

// streams are the watches whose start is known. One that asked for initial events and broke off within
// them has none after.
func (s *story) streams() (all []stream) {
	for i := range s.Watches {
		w := &s.Watches[i]
		st := stream{Watch: w, from: w.From, events: w.Events, started: !w.Initial}
		for j, e := range w.Events {
			if w.Initial && !st.started && e.Last {
				st.from, st.started = e.RV, true
				st.initial, st.events = w.Events[:j], w.Events[j+1:]
			}
		}
		if !st.started {
			st.initial, st.events = w.Events, nil
		}
		all = append(all, st)
	}
	return all
}

func (st *stream) finding(promise Promise, key, format string, args ...any) Finding {
	return Finding{Promise: promise, Key: key, IDs: []uint64{st.ID}, Detail: fmt.Sprintf("a watch on "+st.Node+": "+format, args...)}
}

// eachStream runs a checker on every stream.
func (s *story) eachStream(check func(st *stream) []Finding) (found []Finding) {
	for _, st := range s.streams() {
		found = append(found, check(&st)...)
	}
	return found
}

// ordered: the versions of a stream's events grow.
func ordered(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		last := uint64(0)
		for _, e := range st.events {
			if e.Type == "BOOKMARK" {
				continue
			}
			if e.RV < last && !st.shown(e, 2) {
				found = append(found, st.finding(Ordered, e.Key, "version %d came after version %d", e.RV, last))
			}
			last = max(last, e.RV)
		}
		return found
	})
}

// shown tells whether a stream shows the version of an event so many times.
func (st *stream) shown(event history.Event, times int) bool {
	for _, e := range st.events {
		if e.Type != "BOOKMARK" && e.RV == event.RV {
			times--
		}
	}
	return times <= 0
}

// unique: no version comes twice in a stream.
func unique(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		seen := make(map[uint64]bool)
		for _, e := range st.events {
			if e.Type == "BOOKMARK" {
				continue
			}
			if seen[e.RV] {
				found = append(found, st.finding(Unique, e.Key, "version %d came twice", e.RV))
			}
			seen[e.RV] = true
		}
		return found
	})
}

// reliable: a stream shows every event that anybody saw between its start and its last version. That a
// watch resumes where another one ended, on another node, is checked so too.
func reliable(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		seen, last := make(map[uint64]bool), st.from
		for _, e := range st.events {
			last = max(last, e.RV)
			seen[e.RV] = seen[e.RV] || e.Type != "BOOKMARK"
		}
		for key, versions := range s.keys {
			if resourceOf(key) != st.Resource || st.Key != "" && st.Key != key {
				continue
			}
			for _, v := range versions {
				if v.seen && st.from < v.rv && v.rv <= last && !seen[v.rv] {
					found = append(found, st.finding(Reliable, key, "version %d is missing between %d and %d", v.rv, st.from, last))
				}
			}
		}
		return append(found, s.initialState(st)...)
	})
}

// initialState holds the initial events against the state that they stand for.
func (s *story) initialState(st *stream) (found []Finding) {
	if !st.Initial || !st.started {
		return nil
	}
	shown := make(map[string]uint64)
	for _, e := range st.initial {
		shown[e.Key] = e.RV
		if next := s.present(e.Key, e.RV, st.from); next != nil {
			found = append(found, st.finding(Reliable, e.Key, "the initial events at version %d show version %d, which version %d replaced", st.from, e.RV, next.rv))
		}
	}
	for key := range s.keys {
		if _, there := shown[key]; there || resourceOf(key) != st.Resource || st.Key != "" && st.Key != key {
			continue
		}
		if last := s.absent(key, st.from, st.from, st.Events[len(st.Events)-1].At); last != nil {
			found = append(found, st.finding(Reliable, key, "the initial events at version %d do not show version %d", st.from, last.rv))
		}
	}
	return found
}

// bookmarked: a bookmark at a version says that everything up to it has been sent.
func bookmarked(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		mark := uint64(0)
		if st.Initial && st.started {
			mark = st.from
		}
		for _, e := range st.events {
			if e.Type == "BOOKMARK" && e.RV < mark || e.Type != "BOOKMARK" && e.RV <= mark && !st.shown(e, 2) {
				found = append(found, st.finding(Bookmarked, e.Key, "%s at version %d after a bookmark at %d", e.Type, e.RV, mark))
			}
			if e.Type == "BOOKMARK" {
				mark = max(mark, e.RV)
			}
		}
		return found
	})
}

// startsAfter: a watch that starts after a version shows nothing at or below it, also if the node was not
// there yet when it was asked.
func startsAfter(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		for _, e := range st.events {
			if !st.Initial && (e.RV < st.from || e.RV == st.from && e.Type != "BOOKMARK") {
				found = append(found, st.finding(StartsAfter, e.Key, "%s at version %d, and it starts after %d", e.Type, e.RV, st.from))
			}
		}
		return found
	})
}

// rightTypes: ADDED where there was nothing, MODIFIED and DELETED where there was something; and a
// DELETED shows what was there last.
func rightTypes(s *story) []Finding {
	return s.eachStream(func(st *stream) (found []Finding) {
		for _, e := range st.initial {
			if e.Type != "ADDED" {
				found = append(found, st.finding(RightTypes, e.Key, "%s at version %d among the initial events", e.Type, e.RV))
			}
		}
		for _, e := range st.events {
			if e.Type == "BOOKMARK" {
				continue
			}
			before := s.at(e.Key, e.RV-1)
			known := before != nil && s.covers(st.Resource, before.rv, e.RV)
			there := before != nil && !before.deleted
			switch {
			case e.Type == "ADDED" && known && there, e.Type != "ADDED" && known && !there:
				found = append(found, st.finding(RightTypes, e.Key, "%s at version %d after %s at version %d", e.Type, e.RV, before, before.rv))
			case e.Type == "DELETED" && known && e.Value != before.value:
				found = append(found, st.finding(RightTypes, e.Key, "DELETED at version %d shows %q, the last was %s", e.RV, e.Value, before))
			case e.Type != "ADDED" && e.Type != "MODIFIED" && e.Type != "DELETED":
				found = append(found, st.finding(RightTypes, e.Key, "type %q at version %d", e.Type, e.RV))
			}
		}
		return found
	})
}

// initialEnd: the initial events end with one annotated bookmark, and other watches have none.
func initialEnd(s *story) (found []Finding) {
	return s.eachStream(func(st *stream) []Finding {
		ends := 0
		for _, e := range st.Events {
			if e.Last {
				ends++
			}
		}
		if ends > 1 || !st.Initial && ends > 0 {
			return []Finding{st.finding(InitialEnd, "", "%d bookmarks say that the initial events have ended", ends)}
		}
		return nil
	})
}

// notSilent: a watch that is open while nothing is wrong shows what was written.
func notSilent(s *story) []Finding {
	return s.eachStream(func(st *stream) []Finding {
		last := st.from
		for _, e := range st.events {
			last = max(last, e.RV)
		}
		if last < st.Owed {
			return []Finding{st.finding(NotSilent, "", "it has come to version %d, and version %d was there long ago", last, st.Owed)}
		}
		return nil
	})
}
