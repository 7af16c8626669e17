package fsm

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Observer is told of every change, on the FSM goroutine: after the view was
// swapped, before those who wait for the index are woken. It must not block.
type Observer interface {
	// OnApply is called once a batch, also with no events, because the index
	// moved. The FSM never touches events again, so an observer may keep the
	// slice; as all observers get the same one, none may change it.
	OnApply(index uint64, events []Event)
	// OnRestore is called when the whole state was replaced. Which events led
	// there is not known.
	OnRestore(index uint64)
}

// FSM is the replicated state machine. Its only way to change is through raft.
type FSM struct {
	view      atomic.Pointer[View]
	waiting   waiters
	observers []Observer
	limit     int    // of remembered commands; rememberLimit except in tests
	state     *state // FSM goroutine only
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New returns an empty FSM at index 0.
func New(observers ...Observer) *FSM { return newFSM(rememberLimit, observers...) }

func newFSM(limit int, observers ...Observer) *FSM {
	f := &FSM{observers: observers, limit: limit, state: newState(limit)}
	f.view.Store(f.state.freeze(0, nil))
	return f
}

// View returns the state as of the last applied batch, in one atomic load.
func (f *FSM) View() *View { return f.view.Load() }

// Index returns the index of the last applied log entry: raft's, plus what
// restored backups have added (see DESIGN.md).
func (f *FSM) Index() uint64 { return f.View().index }

// Apply applies one entry. The response is a Result.
func (f *FSM) Apply(log *raft.Log) any { return f.ApplyBatch([]*raft.Log{log})[0] }

// ApplyBatch applies entries in order and publishes them as one view. The
// response to a command is a Result, to a configuration entry nil: that one
// moves the index and changes nothing. How a log is cut into batches makes no
// difference to the state, the results or the sequence of events.
//
// Values are kept, not copied: the Data of an entry must not be changed later.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	if len(logs) == 0 {
		return nil
	}
	prev := f.View()
	index, restored, responses := prev.index, uint64(0), make([]any, len(logs))
	var events []Event
	for i, log := range logs {
		next := log.Index + f.state.offset
		if next <= index {
			panic(fmt.Sprintf("fsm: log entry %d came after entry %d", log.Index, index-f.state.offset))
		}
		index = next
		switch log.Type {
		case raft.LogConfiguration:
			continue
		case raft.LogCommand:
		default:
			panic(fmt.Sprintf("fsm: log entry %d has unexpected type %s", log.Index, log.Type))
		}
		c, err := DecodeCommand(log.Data)
		if err != nil {
			panic(fmt.Sprintf("fsm: log entry %d (%d bytes, term %d): %v", log.Index, len(log.Data), log.Term, err))
		}
		result, event, changed := f.state.apply(index, c)
		responses[i] = result
		switch {
		case changed && c.Op == OpRestore:
			index, restored, events = result.Index, result.Index, nil
		case changed:
			events = append(events, event)
		}
	}
	f.publish(prev, index, restored, events)
	return responses
}

// publish makes the state visible, then tells the observers, then those who
// wait. If the state was replaced, at restored, only what came after is an event.
func (f *FSM) publish(prev *View, index, restored uint64, events []Event) {
	if len(events) > 0 || restored > 0 {
		prev = nil
	}
	f.view.Store(f.state.freeze(index, prev))
	for _, o := range f.observers {
		if restored > 0 {
			o.OnRestore(restored)
		}
		if index > restored {
			o.OnApply(index, events)
		}
	}
	f.waiting.release(index)
}

// Snapshot captures the current view, in O(1). Raft writes it out while the FSM
// goes on.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) { return &snapshot{f.View()}, nil }

// Restore replaces the state by that of a snapshot, or, when the snapshot is
// not sound, returns an error and changes nothing. The caller closes r.
//
// The index becomes the one in the snapshot's header, because raft does not
// tell it. It never falls: a snapshot that is behind this state is refused.
func (f *FSM) Restore(r io.ReadCloser) error {
	s := newState(f.limit)
	header, err := s.load(r)
	if err != nil {
		return err
	}
	if index := f.Index(); header.Index < index {
		return fmt.Errorf("snapshot: index %d is behind this node's %d", header.Index, index)
	}
	f.state = s
	f.publish(nil, header.Index, header.Index, nil)
	return nil
}
