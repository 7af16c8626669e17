package fsm

// rememberLimit is how many commands the FSM remembers. Replicated behaviour:
// nodes with different limits would answer differently, so changing it needs a
// new command version. 65,536 are 6 s of retries at 10,000 writes a second, and
// about 5 MB.
const rememberLimit = 65536

// remembered is a command that was decided: its id, its outcome, its index.
type remembered struct {
	id    ID
	index uint64
	code  Code
}

// memory holds the last limit decided commands. Commands are decided in index
// order, so the ring is a queue ordered by index.
//
// The ring is a slice that is only appended to and cut at the front. Whoever
// holds an older header of it (a view) therefore sees frozen contents, at no
// cost, while the FSM goes on; append moves the live part to a new array when
// the old one is used up.
type memory struct {
	limit   int
	ring    []remembered
	evicted uint64 // index of the newest command that left the ring, 0 if none did
	known   map[ID]remembered
}

func newMemory(limit int) memory {
	return memory{limit: limit, known: make(map[ID]remembered)}
}

// find returns the outcome of a command that was decided before.
func (m *memory) find(id ID) (remembered, bool) {
	r, ok := m.known[id]
	return r, ok
}

// mayHaveForgotten reports whether a command first proposed when its proposer
// had seen base, and not found, may have been decided before. If it was, then
// after base; so it is gone only if something newer than base is gone.
func (m *memory) mayHaveForgotten(base uint64) bool {
	return base < m.evicted
}

// add remembers r, which must be newer than all others, and evicts the oldest.
func (m *memory) add(r remembered) {
	if len(m.ring) >= m.limit {
		oldest := m.ring[0]
		delete(m.known, oldest.id)
		m.evicted = oldest.index
		m.ring = m.ring[1:]
	}
	m.ring = append(m.ring, r)
	m.known[r.id] = r
}
