package cluster

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 16 * time.Microsecond, 16*time.Microsecond + 1, time.Millisecond, time.Minute} {
		h.Observe(d)
	}
	d := h.Distribution()
	for bound, want := range map[float64]uint64{16e-6: 2, 32e-6: 3, 512e-6: 3, 1024e-6: 4, 33.554432: 4} {
		if got, ok := d.Buckets[bound]; !ok || got != want {
			t.Errorf("at most %g s: %d (%v), want %d", bound, got, ok, want)
		}
	}
	if d.Count != 5 || d.Seconds < 60.001 || d.Seconds > 60.002 {
		t.Errorf("count %d, sum %g", d.Count, d.Seconds)
	}
}

// BenchmarkHistogram is what each command pays for being timed, once a step.
func BenchmarkHistogram(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.since(time.Now())
	}
}
