package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"kontiki/scripts/chaos/history"
)

// searchTime bounds the search for one object and for all of them together.
const (
	searchTime    = 10 * time.Second
	searchTimeAll = 60 * time.Second
)

// linearizable: the calls on each object can be put in one order, each at a time between its begin and its
// end, in which every answer is right. Reads at a version are no part of it.
func linearizable(s *story) (found []Finding) {
	byKey, known := make(map[string][]porcupine.Operation), s.acknowledgedBy()
	for i := range s.Ops {
		op := &s.Ops[i]
		if counts(op) && !s.vain(op, known.before(op.Call).rv) {
			byKey[op.Key] = append(byKey[op.Key], s.operation(op))
		}
	}
	deadline := time.Now().Add(searchTimeAll)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		budget := min(searchTime, max(time.Until(deadline), time.Millisecond))
		switch porcupine.CheckOperationsTimeout(register, byKey[key], budget) {
		case porcupine.Illegal:
			found = append(found, Finding{Promise: Linearizable, Key: key, IDs: idsOf(byKey[key]), Detail: fmt.Sprintf("no order of its %d calls explains their answers", len(byKey[key]))})
		case porcupine.Unknown:
			found = append(found, Finding{Promise: Linearizable, Key: key, Undecided: true, Detail: fmt.Sprintf("%d calls, %s were not enough", len(byKey[key]), budget)})
		}
	}
	return found
}

// counts tells whether a call says anything about the state of its object.
func counts(op *history.Op) bool {
	switch {
	case op.Kind == history.List, op.Kind == history.Get && op.Asked != "":
		return false
	case op.Outcome == history.OK:
		return true
	case op.Outcome == history.Unknown:
		return op.Writes()
	default: // 404 and 409 tell of the state, a 503 of the cluster
		return op.Code == 404 || op.Code == 409 && op.Kind != history.Set
	}
}

// vain tells whether an unknown write is known never to have happened: a watch has shown everything from
// before it began to the last that is known, and not this. Each one that stays in doubles the search.
func (s *story) vain(op *history.Op, low uint64) bool {
	return op.Outcome == history.Unknown && op.Kind != history.Delete && len(s.values[op.Value]) == 0 &&
		s.covers(op.Resource, low, s.last[op.Resource])
}

// operation is a call as porcupine wants it. An unknown one may take effect at any time after it began;
// to have it after everything else is to say that it never did. Where its version was seen, that is its
// answer.
func (s *story) operation(op *history.Op) porcupine.Operation {
	operation := porcupine.Operation{Input: op, Output: op.RV, Call: op.Call, Return: op.Return, Metadata: op.ID}
	if op.Outcome == history.Unknown {
		operation.Return = math.MaxInt64
		if seen := s.values[op.Value]; op.Kind != history.Delete && len(seen) > 0 {
			operation.Output = seen[0].rv
		}
	}
	return operation
}

// object is the state of one object. Its version is that of the last write; 0 where nobody saw it.
type object struct {
	exists bool
	rv     uint64
	value  string
	last   uint64 // the highest version so far, deletions included
}

var register = porcupine.Model{
	Init: func() any { return object{} },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(object), input.(*history.Op), output.(uint64))
	},
}

// step is the specification: what a call with this answer does to the object, and whether it may.
func step(o object, op *history.Op, rv uint64) (bool, object) {
	met := o.exists && (op.Asked == "" || o.rv == 0 || fmt.Sprint(o.rv) == op.Asked) // the precondition
	if op.Kind == history.Create {
		met = !o.exists
	}
	switch {
	case op.Outcome == history.Refused:
		return op.Code == 404 && !o.exists || op.Code == 409 && (!met || o.exists && o.rv == 0), o
	case op.Kind == history.Get:
		return o.exists && o.rv == rv && o.value == op.Value, o
	case rv != 0 && rv <= o.last:
		return false, o
	case !met:
		return op.Outcome == history.Unknown && rv == 0, o
	case op.Kind == history.Delete:
		return true, object{last: max(o.last, rv)}
	default:
		return true, object{exists: true, rv: rv, value: op.Value, last: max(o.last, rv)}
	}
}

// idsOf names a few calls of an object, the last ones.
func idsOf(ops []porcupine.Operation) (ids []uint64) {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range ops[max(0, len(ops)-8):] {
		ids = append(ids, op.Metadata.(uint64))
	}
	return ids
}
