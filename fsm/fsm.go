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
	f.view.Store(f.state.freeze(0, nil, true))
	return f
}

// View returns the state as of the last applied batch, in one atomic load.
func (f *FSM) View() *View { return f.view.Load() }

// Index returns the index of the last applied log entry.
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
	index, responses := prev.index, make([]any, len(logs))
	var events []Event
	for i, log := range logs {
		if log.Index <= index {
			panic(fmt.Sprintf("fsm: log entry %d came after entry %d", log.Index, index))
		}
		index = log.Index
		switch log.Type {
		case raft.LogConfiguration:
			continue
		case raft.LogCommand:
		default:
			panic(fmt.Sprintf("fsm: log entry %d has unexpected type %s", index, log.Type))
		}
		c, err := DecodeCommand(log.Data)
		if err != nil {
			panic(fmt.Sprintf("fsm: log entry %d (%d bytes, term %d): %v", index, len(log.Data), log.Term, err))
		}
		result, event, changed := f.state.apply(index, c)
		responses[i] = result
		if changed {
			events = append(events, event)
		}
	}
	f.view.Store(f.state.freeze(index, prev, len(events) > 0))
	for _, o := range f.observers {
		o.OnApply(index, events)
	}
	f.waiting.release(index)
	return responses
}

// Snapshot captures the current view, in O(1). Raft writes it out while the FSM
// goes on.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) { return &snapshot{f.View()}, nil }

// Restore replaces the state by that of a snapshot, or, when the snapshot is
// not sound, returns an error and changes nothing. The caller closes r.
//
// The index becomes the one in the snapshot's header, because raft does not
// tell it. That is less than before only when an operator restored an old
// backup; observers must expect it.
func (f *FSM) Restore(r io.ReadCloser) error {
	s := newState(f.limit)
	header, err := s.load(r)
	if err != nil {
		return err
	}
	f.state = s
	f.view.Store(s.freeze(header.Index, nil, true))
	for _, o := range f.observers {
		o.OnRestore(header.Index)
	}
	f.waiting.release(header.Index)
	return nil
}
