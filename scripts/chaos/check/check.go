// Package check judges the history of a chaos run: each checker holds it against one promise that the
// README makes. An empty answer means that nothing in the history contradicts the promise, which is not
// the same as that it always holds.
//
// What happened is put together from everything that anybody saw (see story): a version, which is a raft
// index, names one write, so that most checks are lookups by version, not searches. Only linearizability
// needs a search, by porcupine.
package check

import (
	"fmt"
	"strings"

	"kontiki/scripts/chaos/history"
)

// Promise names what a checker checks.
type Promise string

// The promises, one checker each.
const (
	OneWriteAVersion Promise = "one version names one write"
	Acknowledged     Promise = "an acknowledged write is kept"
	RefusedStays     Promise = "a refused write never appears"
	Once             Promise = "a write appears at most once"
	VersionsGrow     Promise = "versions only grow"
	Linearizable     Promise = "objects are linearizable"
	FreshReads       Promise = "a read with no version sees every completed write"
	NoTimeTravel     Promise = "a read at version 0 is never older than what its node has served"
	AtLeast          Promise = "a read at version N is at N or later"
	Replay           Promise = "a list is the state at its version"
	OnePageState     Promise = "the pages of a list are of one state"
	Ordered          Promise = "a watch is in order"
	Unique           Promise = "a watch shows an event once"
	Reliable         Promise = "a watch leaves nothing out"
	Bookmarked       Promise = "a watch shows nothing at or below its bookmarks"
	StartsAfter      Promise = "a watch shows nothing at or below its start"
	RightTypes       Promise = "a watch's events have the right type"
	InitialEnd       Promise = "a watch list ends with one bookmark"
	NotAhead         Promise = "a watch is never ahead of what a read on its node sees"
	NotSilent        Promise = "a watch is not silent"
	SameState        Promise = "nodes at one index have one digest"
	OneLeader        Promise = "a term has at most one leader"
	SoundAnswers     Promise = "an answer is a documented one, in bounded time"
	Warned           Promise = "a node that knows no leader says so"
)

// Finding is a promise that the history contradicts.
type Finding struct {
	Promise Promise
	Key     string   // of the object, if it is about one
	Detail  string   // what was seen and what it contradicts
	IDs     []uint64 // of the calls and watches involved
	// Undecided says that the time for the search was not enough: neither good nor bad.
	Undecided bool
}

// String is the finding on one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", f.Promise)
	if f.Undecided {
		b.WriteString("undecided: ")
	}
	if f.Key != "" {
		fmt.Fprintf(&b, "%s: ", f.Key)
	}
	b.WriteString(f.Detail)
	if len(f.IDs) > 0 {
		fmt.Fprintf(&b, " (see %s)", strings.Trim(fmt.Sprint(f.IDs), "[]"))
	}
	return b.String()
}

// Final is the state after the end: what every node says when asked for the latest.
type Final struct {
	Lists   []history.Op     // a list of each resource on each node, with no version
	Digests []history.Digest // of each node
}

// checkers are all of them. Each may look at everything and reports its own promise only.
var checkers = []func(*story) []Finding{
	oneWriteAVersion, acknowledged, refusedStays, once, versionsGrow, linearizable,
	freshReads, noTimeTravel, atLeast, replay, onePageState,
	ordered, unique, reliable, bookmarked, startsAfter, rightTypes, initialEnd, notAhead, notSilent,
	sameState, oneLeader, soundAnswers, warned,
}

// findingsMax bounds what one checker reports: when a promise is broken, it is often broken everywhere.
const findingsMax = 10

// All holds the history and what was left at the end against every promise.
func All(h *history.History, final Final) (found []Finding) {
	s := tell(h, final)
	for _, check := range checkers {
		these := check(s)
		found = append(found, these[:min(len(these), findingsMax)]...)
	}
	return found
}
