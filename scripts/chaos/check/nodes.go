package check

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"kontiki/scripts/chaos/history"
)

// sameState: nodes that are at one index have one digest.
func sameState(s *story) (found []Finding) {
	first := make(map[uint64]history.Digest)
	for _, d := range slices.Concat(s.Digests, s.final.Digests) {
		other, known := first[d.Index]
		if !known {
			first[d.Index] = d
		} else if other.Digest != d.Digest {
			found = append(found, Finding{
				Promise: SameState,
				Detail:  fmt.Sprintf("at index %d, %s has digest %.12s and %s has %.12s", d.Index, other.Node, other.Digest, d.Node, d.Digest),
			})
		}
	}
	return found
}

// oneLeader: no two nodes lead in the same term.
func oneLeader(s *story) (found []Finding) {
	leaders := make(map[uint64]string)
	for _, d := range slices.Concat(s.Digests, s.final.Digests) {
		if d.State != "Leader" {
			continue
		}
		if other := leaders[d.Term]; other != "" && other != d.Node {
			found = append(found, Finding{Promise: OneLeader, Detail: fmt.Sprintf("in term %d lead %s and %s", d.Term, other, d.Node)})
		}
		leaders[d.Term] = d.Node
	}
	return found
}

// answerWithin bounds an answer while nothing begins or ends: 10 s for a leader to be found, and what it
// takes to try for the last time.
const answerWithin = 15 * time.Second

// diskFull is the cause of a refusal that names no time: somebody has to make room first.
const diskFull = "DiskFull"

// soundAnswers: clients can act on every answer. A 5xx is 503 or 504 and says when to come back, unless
// it refuses a write because a disk is full.
func soundAnswers(s *story) (found []Finding) {
	for i := range s.Ops {
		op := &s.Ops[i]
		why := ""
		switch {
		case op.Code == 0:
		case op.Code == http.StatusServiceUnavailable || op.Code == http.StatusGatewayTimeout || op.Code == http.StatusTooManyRequests:
			if op.RetryIn == "" && !(op.Writes() && op.Code == http.StatusServiceUnavailable && op.Cause == diskFull) {
				why = "has no Retry-After"
			}
		case op.Outcome != history.OK && !slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusGone}, op.Code):
			why = "is no answer to this call"
		}
		if took := time.Duration(op.Return - op.Call); why == "" && op.Code != 0 && took > answerWithin && s.calm(op.Call, op.Return) {
			why = fmt.Sprintf("took %s", took)
		}
		if why != "" {
			found = append(found, Finding{
				Promise: SoundAnswers, Key: op.Key, IDs: []uint64{op.ID},
				Detail: fmt.Sprintf("%s on %s: answer %d %s: %s", op.Kind, op.Node, op.Code, why, op.Error),
			})
		}
	}
	return found
}

// calm tells whether no fault began or ended between two times: a process that was paused answers late.
func (s *story) calm(from, to int64) bool {
	return !slices.ContainsFunc(s.Notes, func(n history.Note) bool { return from <= n.At && n.At <= to })
}

// What surrounds a read of a node that had no leader all the time: what its probes said at least
// so long before it and after it. A probe that was under way during the read says nothing.
const (
	silentBefore = int64(time.Second)
	silentAfter  = int64(2 * time.Second)
)

// warned: a node that knows no leader says so in whatever it answers at version 0.
func warned(s *story) (found []Finding) {
	probes := make(map[string][]history.Digest)
	for _, d := range s.Digests {
		probes[d.Node] = append(probes[d.Node], d)
	}
	for i := range s.Ops {
		op := &s.Ops[i]
		if isRead(op) && op.Outcome == history.OK && op.Asked == "0" && op.Warning == "" && s.silent(op, probes[op.Node]) {
			found = append(found, Finding{
				Promise: Warned, Key: op.Key, IDs: []uint64{op.ID},
				Detail: fmt.Sprintf("a %s on %s has no Warning, and the node knew no leader", op.Kind, op.Node),
			})
		}
	}
	return found
}

// silent tells whether a node said, well before and after a call, that it knows no leader, in one
// term and one life.
func (s *story) silent(op *history.Op, probes []history.Digest) bool {
	from, to, term := op.Call-silentBefore, op.Return+silentAfter, uint64(0)
	before, after := false, false
	for _, d := range probes {
		if d.At < from || d.At > to {
			continue
		}
		if d.Leader != "" || d.Term != cmp.Or(term, d.Term) {
			return false
		}
		term, before = d.Term, before || d.At < op.Call
		after = after || d.At > op.Return+int64(time.Second)
	}
	return before && after && s.calm(from, to)
}
