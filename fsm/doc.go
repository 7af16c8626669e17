// Package fsm is the replicated state machine of a Kontiki node: versioned
// keys, changed only by committed log entries. It knows bytes, keys and
// indexes; it knows nothing of nodes, of Kubernetes, or of the time.
//
// # Story
//
// One log entry carries one [Command]: create, update or delete one key, if a
// precondition holds. The index of the entry becomes the ModIndex of the key,
// so an index names exactly one write. Everything random or clock-dependent is
// decided before a command is proposed; here it is only compared and stored,
// so that every node that applies the same log holds the same state, to the
// byte ([View.Digest] is how that is checked).
//
// The state is a copy-on-write ordered tree. After each batch of entries the
// FSM publishes a frozen copy of it, a [View], through one atomic pointer.
// Making that copy is O(1), and so are reads at one consistent index, raft
// snapshots that never hold up Apply, and lists of an older version
// ([View.Rewind]).
//
// # Order
//
// For every batch: the view is swapped, then the observers are told, then
// those who wait for the index are woken. Whoever is told of an index, by an
// event or by [FSM.WaitIndex], can therefore already read it.
//
// # Goroutines
//
// The package starts none. Apply, ApplyBatch, Snapshot and Restore are called
// by raft, one at a time, on its FSM goroutine (Restore also on the goroutine
// that opens raft, before the FSM goroutine exists); observers run there too
// and must not block. Persist of a snapshot runs on raft's snapshot goroutine,
// beside Apply. View, Index, WaitIndex and everything on a View or an Entry may
// be used from any goroutine at any time.
//
// # Failure
//
// A failed precondition is a [Result], not an error. An entry that cannot be
// decoded, an unknown operation, or an index that does not ascend panics: a
// node that skipped it would silently differ from its peers.
package fsm
