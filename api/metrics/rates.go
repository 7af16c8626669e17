package metrics

import (
	"context"
	"sync"
	"time"
)

const (
	// rateInterval is how often the counters are noted, rateWindow how many notes
	// are kept: a rate is the mean of the last minute.
	rateInterval = 5 * time.Second
	rateWindow   = 13
)

// Rates is how much a node does, a second, over the last minute.
type Rates struct {
	Reads    float64 `json:"reads"`
	Writes   float64 `json:"writes"`
	Failures float64 `json:"failures"` // answered with 5xx
}

// note is the counters at one time.
type note struct {
	at                      time.Time
	reads, writes, failures uint64
}

// rates remembers what the counters were.
type rates struct {
	counters *totals
	mu       sync.Mutex
	notes    []note // guarded by mu; the oldest first
}

func newRates(counters *totals) *rates {
	r := &rates{counters: counters}
	r.notes = []note{r.look()}
	return r
}

func (r *rates) look() note {
	return note{time.Now(), r.counters.reads.Load(), r.counters.writes.Load(), r.counters.failures.Load()}
}

func (r *rates) run(ctx context.Context) {
	ticker := time.NewTicker(rateInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.keep(r.look())
		case <-ctx.Done():
			return
		}
	}
}

func (r *rates) keep(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
	if len(r.notes) > rateWindow {
		r.notes = append(r.notes[:0], r.notes[1:]...)
	}
}

// now returns the rates since the oldest note.
func (r *rates) now() Rates {
	r.mu.Lock()
	first := r.notes[0]
	r.mu.Unlock()
	last := r.look()
	seconds := max(last.at.Sub(first.at).Seconds(), 1)
	return Rates{
		Reads:    float64(last.reads-first.reads) / seconds,
		Writes:   float64(last.writes-first.writes) / seconds,
		Failures: float64(last.failures-first.failures) / seconds,
	}
}
