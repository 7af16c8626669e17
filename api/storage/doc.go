// Package storage is Kubernetes' storage.Interface on a replicated log.
//
// Upstream's registries ask their storage for a dozen verbs; this package
// answers them from three things that a node has:
//
//   - a Proposer, which turns a command into a log entry and says what became
//     of it once this node has applied it,
//   - the State, whose frozen views are read without locks, and
//   - the Feed, the ordered events that views consist of.
//
// There is no cache between the registries and the state: the state is already
// in memory, in the encoding in which clients get it (sent.go), so that what they
// read in protobuf need not be decoded at all. Where it must be, for selectors, for
// JSON, or for a registry to work on, that is done once per node and version, by
// whoever asks first, and the decoded object is shared by every get, list and watch
// after that; so nobody may change it, and whatever leaves this package for a caller
// that may, is a copy.
//
// A verb has a file. How fresh a read must be is decided in freshness.go, and
// nowhere else.
//
// Goroutines: every method runs on its caller's; Watch starts one, which ends
// with the watch.
package storage
