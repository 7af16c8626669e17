package fsm

import (
	"bytes"
	"io"
	"math"
	"strings"
)

const (
	// StagingPrefix is below which the pieces of a snapshot file that is to be
	// restored are put, by ordinary commands: "/kontiki/restore/<name>/<number>",
	// the numbers in the order of keys. They are entries like others, in
	// snapshots too; OpRestore takes them all away.
	StagingPrefix = "/kontiki/restore/"

	// RestoreGap is how far the index jumps past that of a restored snapshot. A
	// cluster that was lost had gone on after its last backup, and its clients
	// have seen the indexes of that time: they must never come again.
	RestoreGap = 1_000_000_000
)

// replace executes OpRestore: the state becomes what the staged snapshot holds,
// every entry of it as if written at one new index, which is higher than any
// that this cluster or the one of the snapshot has used. The remembered commands
// stay those of this log. If the pieces are not there, or not a sound snapshot,
// the answer is NotFound and nothing changes.
func (s *state) replace(index uint64, staging string) Result {
	fresh, theirs := newState(0), newMemory(rememberLimit)
	var restored []*Entry
	header, err := scan(s.staged(staging), &theirs, func(e *Entry) {
		if !strings.HasPrefix(e.Key, StagingPrefix) { // saved while another restore was under way
			restored = append(restored, e)
		}
	})
	res := Result{Code: NotFound, Index: index}
	if err == nil && header.Index < math.MaxInt64-RestoreGap {
		res = Result{Code: OK, Index: max(index, header.Index+RestoreGap)}
		for _, e := range restored {
			e.CreateIndex, e.ModIndex = res.Index, res.Index
			fresh.append(e)
		}
		s.entries, s.expiring = fresh.entries, fresh.expiring
		s.offset += res.Index - index
	}
	return res
}

// staged reads the pieces below prefix as one file.
func (s *state) staged(prefix string) io.Reader {
	var pieces []io.Reader
	s.entries.Ascend(&Entry{Key: prefix}, func(e *Entry) bool {
		if !strings.HasPrefix(e.Key, prefix) {
			return false
		}
		pieces = append(pieces, bytes.NewReader(e.Value))
		return true
	})
	return io.MultiReader(pieces...)
}

// Renew writes every entry anew, at one index that is RestoreGap after the
// last. It is for a state that lost its end, and with it indexes that readers
// have seen. It is not part of the log: only for a node that goes on alone.
func (f *FSM) Renew() {
	index := f.Index() + RestoreGap
	renewed := newState(0)
	renewed.memory, renewed.offset = f.state.memory, f.state.offset+RestoreGap
	f.state.entries.Scan(func(e *Entry) bool {
		renewed.append(&Entry{Key: e.Key, Value: e.Value, CreateIndex: index, ModIndex: index, Expires: e.Expires})
		return true
	})
	f.state = renewed
	f.publish(nil, index, index, nil)
}
