package check

import (
	"fmt"

	"kontiki/scripts/chaos/history"
)

// oneWriteAVersion: nobody saw two things at one version, or what nobody has written.
func oneWriteAVersion(s *story) []Finding {
	found := s.conflicts
	for value, places := range s.values {
		writer := s.writers[value]
		for _, v := range places {
			if writer == nil || writer.Key != v.key {
				found = append(found, Finding{
					Promise: OneWriteAVersion, Key: v.key, IDs: []uint64{v.by},
					Detail: fmt.Sprintf("version %d holds %q, which nobody wrote there", v.rv, value),
				})
			}
		}
	}
	return found
}

// acknowledged: what was acknowledged was seen by whoever watched when it was written, and is there in
// the end, or something later is.
func acknowledged(s *story) (found []Finding) {
	ends := s.endings()
	for i := range s.Ops {
		op := &s.Ops[i]
		if !op.Writes() || op.Outcome != history.OK || op.RV == 0 {
			continue
		}
		v := s.versions[op.RV]
		if v != nil && !v.seen && s.covers(op.Resource, op.RV-1, op.RV) {
			found = append(found, Finding{
				Promise: Acknowledged, Key: op.Key, IDs: []uint64{op.ID},
				Detail: fmt.Sprintf("%s %s was acknowledged at version %d, and nobody has seen it", op.Kind, op.Value, op.RV),
			})
		}
		for _, end := range ends[op.Resource] {
			if end.contradicts(s, op) {
				found = append(found, Finding{
					Promise: Acknowledged, Key: op.Key, IDs: []uint64{op.ID},
					Detail: fmt.Sprintf("%s %s was acknowledged at version %d, and in the end %s has %s", op.Kind, op.Value, op.RV, end.list.Node, end.shows(op.Key)),
				})
			}
		}
	}
	return found
}

// ending is a final list, by key.
type ending struct {
	list  *history.Op
	items map[string]history.Item
}

func (s *story) endings() map[string][]ending {
	ends := make(map[string][]ending)
	for i := range s.final.Lists {
		list := &s.final.Lists[i]
		end := ending{list, make(map[string]history.Item)}
		for _, item := range list.Items {
			end.items[item.Key] = item
		}
		ends[list.Resource] = append(ends[list.Resource], end)
	}
	return ends
}

// contradicts tells whether the end shows a state from before a write, and from before nothing else: that
// a later write is missing too is that one's finding.
func (e *ending) contradicts(s *story, op *history.Op) bool {
	if later := s.after(op.Key, op.RV); later != nil {
		return false
	}
	item, there := e.items[op.Key]
	switch {
	case e.list.RV < op.RV:
		return true
	case op.Kind == history.Delete:
		return there && item.RV < op.RV
	case there:
		return item.RV < op.RV
	default:
		return s.absent(op.Key, op.RV, e.list.RV, e.list.Return) != nil
	}
}

func (e *ending) shows(key string) string {
	if item, there := e.items[key]; there {
		return fmt.Sprintf("version %d, %q", item.RV, item.Value)
	}
	return fmt.Sprintf("nothing at version %d", e.list.RV)
}

// refusedStays: a write that failed for certain is nowhere to be seen.
func refusedStays(s *story) (found []Finding) {
	for i := range s.Ops {
		op := &s.Ops[i]
		if op.Outcome != history.Refused || !op.Writes() || op.Kind == history.Delete {
			continue
		}
		for _, v := range s.values[op.Value] {
			found = append(found, Finding{
				Promise: RefusedStays, Key: op.Key, IDs: []uint64{op.ID, v.by},
				Detail: fmt.Sprintf("%s %s was refused with %d (%s), and is there at version %d", op.Kind, op.Value, op.Code, op.Error, v.rv),
			})
		}
	}
	return found
}

// once: each write made one version, also one that was tried again inside.
func once(s *story) (found []Finding) {
	for value, places := range s.values {
		if writer := s.writers[value]; len(places) > 1 && writer != nil {
			found = append(found, Finding{
				Promise: Once, Key: places[0].key, IDs: []uint64{writer.ID, places[0].by, places[1].by},
				Detail: fmt.Sprintf("%s %s (%s) made version %d and version %d", writer.Kind, value, writer.Outcome, places[0].rv, places[1].rv),
			})
		}
	}
	return found
}

// versionsGrow: a write that begins when another is acknowledged has a later version, whatever they write.
func versionsGrow(s *story) (found []Finding) {
	known := s.acknowledgedBy()
	for i := range s.Ops {
		op := &s.Ops[i]
		if !op.Writes() || op.Outcome != history.OK || op.RV == 0 {
			continue
		}
		if low := known.before(op.Call); op.RV <= low.rv {
			found = append(found, Finding{
				Promise: VersionsGrow, Key: op.Key, IDs: []uint64{op.ID, low.by},
				Detail: fmt.Sprintf("a write made version %d after version %d had been acknowledged", op.RV, low.rv),
			})
		}
	}
	return found
}
