package main

import (
	"path/filepath"
	"slices"
	"time"
)

// A span is from when to when something went on.
type span struct{ begin, end time.Time }

// snapshots are those that a node takes, seen from outside: while one is written, its directory has a name
// that ends in .tmp.
type snapshots struct {
	spans   []span
	current string
}

// look sees whether one began or ended.
func (s *snapshots) look(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, "*.tmp")) // the pattern is well-formed
	s.saw(found, time.Now())
}

func (s *snapshots) saw(found []string, at time.Time) {
	if s.current != "" && slices.Contains(found, s.current) {
		s.spans[len(s.spans)-1].end = at
		return
	}
	if s.current = ""; len(found) > 0 {
		s.current = found[0]
		s.spans = append(s.spans, span{at, at})
	}
}

// split sorts how long writes took into those that no snapshot touched and the others.
func split(writes, taken []span) (quiet, busy []time.Duration) {
	for _, w := range writes {
		touched := slices.ContainsFunc(taken, func(s span) bool { return w.begin.Before(s.end) && s.begin.Before(w.end) })
		if touched {
			busy = append(busy, w.end.Sub(w.begin))
		} else {
			quiet = append(quiet, w.end.Sub(w.begin))
		}
	}
	slices.Sort(quiet)
	slices.Sort(busy)
	return quiet, busy
}

func lengths(spans []span) (seconds []float64) {
	for _, s := range spans {
		seconds = append(seconds, s.end.Sub(s.begin).Seconds())
	}
	return seconds
}
