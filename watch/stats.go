package watch

import (
	"cmp"
	"slices"
)

// Stats says what a hub holds.
type Stats struct {
	Index  uint64
	Topics []TopicStats // by name
}

// TopicStats says what the window of one topic holds.
type TopicStats struct {
	Topic   string
	Floor   uint64
	Events  int
	Bytes   int64 // as counted for Config.MaxBytes
	Cursors int
}

// Stats returns what the hub holds, for metrics.
func (h *Hub) Stats() Stats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := Stats{Index: h.Index()}
	for _, t := range h.topics {
		t.mu.Lock()
		s.Topics = append(s.Topics, TopicStats{t.name, t.floor, t.events, t.bytes, int(t.cursors.Load())})
		t.mu.Unlock()
	}
	slices.SortFunc(s.Topics, func(a, b TopicStats) int { return cmp.Compare(a.Topic, b.Topic) })
	return s
}
