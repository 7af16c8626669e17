package main

import (
	"slices"
	"testing"
	"time"
)

func TestSnapshotsFromOutside(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	var s snapshots
	for i, found := range [][]string{nil, {"a.tmp"}, {"a.tmp"}, {"a.tmp"}, nil, {"b.tmp"}, {"b.tmp"}, {"c.tmp"}} {
		s.saw(found, at(i))
	}
	if got := lengths(s.spans); !slices.Equal(got, []float64{2, 1, 0}) {
		t.Errorf("%v", got)
	}
	write := func(from, to int) span { return span{at(from), at(to)} }
	quiet, busy := split([]span{write(0, 1), write(0, 2), write(2, 3), write(3, 9), write(4, 5)}, s.spans[:2])
	if want := []time.Duration{time.Second, time.Second}; !slices.Equal(quiet, want) {
		t.Errorf("quiet: %v", quiet)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 6 * time.Second}; !slices.Equal(busy, want) {
		t.Errorf("busy: %v", busy)
	}
}
