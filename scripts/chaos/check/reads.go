package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"kontiki/scripts/chaos/history"
)

// bound is a version that somebody had been told of at a time.
type bound struct {
	at int64
	rv uint64
	by uint64
}

// bounds tell the highest version known at a time. Sort makes them ready.
type bounds []bound

func (b bounds) sort() bounds {
	slices.SortFunc(b, func(x, y bound) int { return cmp.Compare(x.at, y.at) })
	for i := 1; i < len(b); i++ {
		if b[i].rv < b[i-1].rv {
			b[i].rv, b[i].by = b[i-1].rv, b[i-1].by
		}
	}
	return b
}

// before returns the highest one known strictly before a time.
func (b bounds) before(at int64) bound {
	i, _ := slices.BinarySearchFunc(b, at, func(x bound, at int64) int { return cmp.Compare(x.at, at) })
	if i == 0 {
		return bound{}
	}
	return b[i-1]
}

// acknowledgedBy has the writes by when they were acknowledged.
func (s *story) acknowledgedBy() (known bounds) {
	for i := range s.Ops {
		if op := &s.Ops[i]; op.Writes() && op.Outcome == history.OK && op.RV > 0 {
			known = append(known, bound{op.Return, op.RV, op.ID})
		}
	}
	return known.sort()
}

// isRead tells reads that were answered: with an object, a list, or for certain with nothing.
func isRead(op *history.Op) bool {
	return op.Kind == history.List && op.Outcome == history.OK ||
		op.Kind == history.Get && (op.Outcome == history.OK || op.Code == 404)
}

// older says how a read's answer is from before a version, and returns "" if it is not.
func (s *story) older(op *history.Op, low uint64) string {
	switch {
	case low == 0:
		return ""
	case op.Kind == history.List && op.RV < low:
		return fmt.Sprintf("a list on %s is at version %d", op.Node, op.RV)
	case op.Kind == history.Get && op.Outcome == history.OK:
		if next := s.present(op.Key, op.RV, low); next != nil {
			return fmt.Sprintf("a get on %s shows version %d, which version %d replaced", op.Node, op.RV, next.rv)
		}
	case op.Kind == history.Get:
		if last := s.absent(op.Key, low, 0, op.Return); last != nil {
			return fmt.Sprintf("a get on %s finds nothing, and version %d is there", op.Node, last.rv)
		}
	}
	return ""
}

// freshReads: a read with no version, on any node, sees what was acknowledged before it began, on any
// node, and what another such read saw.
func freshReads(s *story) (found []Finding) {
	known := s.acknowledgedBy()
	for i := range s.Ops {
		if op := &s.Ops[i]; isRead(op) && op.Asked == "" && op.RV > 0 && op.Pages == 0 {
			known = append(known, bound{op.Return, op.RV, op.ID})
		}
	}
	known.sort()
	reads := slices.Concat(s.Ops, s.final.Lists)
	for i := range reads {
		op := &reads[i]
		if !isRead(op) || op.Asked != "" || op.Pages != 0 && op.Pages != op.ID {
			continue
		}
		low := known.before(op.Call)
		if why := s.older(op, low.rv); why != "" {
			found = append(found, Finding{
				Promise: FreshReads, Key: op.Key, IDs: []uint64{op.ID, low.by},
				Detail: fmt.Sprintf("%s, after version %d was known", why, low.rv),
			})
		}
	}
	return found
}

// atLeast: a read that asks for a version gets it or a later one, or exactly that one if it says so.
func atLeast(s *story) (found []Finding) {
	for i := range s.Ops {
		op := &s.Ops[i]
		asked, err := strconv.ParseUint(op.Asked, 10, 64)
		if err != nil || asked == 0 || !isRead(op) {
			continue
		}
		why := s.older(op, asked)
		if op.Exact && op.RV != asked {
			why = fmt.Sprintf("a list on %s is at version %d", op.Node, op.RV)
		}
		if why != "" {
			found = append(found, Finding{Promise: AtLeast, Key: op.Key, IDs: []uint64{op.ID}, Detail: fmt.Sprintf("%s; asked for %d", why, asked)})
		}
	}
	return found
}

// noTimeTravel: what a node answers at version 0 is never older than what it had answered before, also
// before it was restarted.
func noTimeTravel(s *story) []Finding {
	served := make(map[string]bounds)
	for i := range s.Ops {
		if op := &s.Ops[i]; isRead(op) && !op.Exact && op.Pages == 0 && op.RV > 0 {
			served[op.Node] = append(served[op.Node], bound{op.Return, op.RV, op.ID})
		}
	}
	return s.notBefore(NoTimeTravel, served, "this node had served version %d")
}

// notAhead: what a watch has shown, a read on the same node shows too.
func notAhead(s *story) []Finding {
	shown := make(map[string]bounds)
	for i := range s.Watches {
		w := &s.Watches[i]
		for _, e := range w.Events {
			shown[w.Node] = append(shown[w.Node], bound{e.At, e.RV, w.ID})
		}
	}
	return s.notBefore(NotAhead, shown, "a watch on this node had shown version %d")
}

// notBefore wants reads at version 0 to be no older than what their node had said before.
func (s *story) notBefore(promise Promise, said map[string]bounds, what string) (found []Finding) {
	for _, b := range said {
		b.sort()
	}
	for i := range s.Ops {
		op := &s.Ops[i]
		if !isRead(op) || op.Asked != "0" {
			continue
		}
		low := said[op.Node].before(op.Call)
		if why := s.older(op, low.rv); why != "" {
			found = append(found, Finding{
				Promise: promise, Key: op.Key, IDs: []uint64{op.ID, low.by},
				Detail: fmt.Sprintf("%s; "+what, why, low.rv),
			})
		}
	}
	return found
}
