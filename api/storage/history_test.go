package storage_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"

	"kontiki/api/storage"
	"kontiki/fsm"
	"kontiki/watch"
)

// history is an observer that keeps what a node has applied, to make of it what
// another node could hold: a hub that began at a snapshot, a replica that nobody
// has read from.
type history struct {
	mu        sync.Mutex
	applied   []applied      // guarded by mu
	followers []fsm.Observer // guarded by mu
}

type applied struct {
	index  uint64
	events []fsm.Event
}

func (h *history) OnApply(index uint64, events []fsm.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.applied = append(h.applied, applied{index, events})
	for _, f := range h.followers {
		f.OnApply(index, events)
	}
}

// OnRestore is for nodes that install a snapshot. Those of these tests do not.
func (h *history) OnRestore(uint64) { panic("a node of these tests was restored") }

// follow tells o everything after an index, and all that is to come.
func (h *history) follow(o fsm.Observer, after uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.applied {
		from, _ := slices.BinarySearchFunc(a.events, after+1, func(e fsm.Event, index uint64) int {
			return int(int64(e.Index) - int64(index))
		})
		if a.index > after {
			o.OnApply(a.index, a.events[from:])
		}
	}
	h.followers = append(h.followers, o)
}

// hubFrom is the hub of a node that restored a snapshot of index and applied
// what came after: older events are not there, as after a compaction of etcd.
func (h *history) hubFrom(index uint64) *watch.Hub {
	hub := watch.NewHub(watch.Config{})
	if index > 0 {
		hub.OnRestore(index)
	}
	h.follow(hub, index)
	return hub
}

// replica is a state machine that has applied all this one has, with nothing
// decoded yet: objects are decoded once per replica.
func (h *history) replica() (*fsm.FSM, *watch.Hub) {
	hub := watch.NewHub(watch.Config{})
	machine := fsm.New(hub)
	h.follow(&applier{machine}, 0)
	return machine, hub
}

// applier turns events back into the log entries that they came from.
type applier struct{ machine *fsm.FSM }

func (a *applier) OnRestore(uint64) { panic("not followed by anything") }

func (a *applier) OnApply(index uint64, events []fsm.Event) {
	var logs []*raft.Log
	for _, event := range events {
		cmd := fsm.Command{Op: fsm.OpDelete, Key: event.Key(), Base: event.Index - 1}
		binary.BigEndian.PutUint64(cmd.ID[:], event.Index)
		if event.New != nil {
			cmd.Op, cmd.Value, cmd.Expires = fsm.OpUpdate, event.New.Value, event.New.Expires
		}
		if event.Old == nil {
			cmd.Op = fsm.OpCreate
		}
		logs = append(logs, &raft.Log{Index: event.Index, Type: raft.LogCommand, Data: cmd.Append(nil)})
	}
	if n := len(logs); n == 0 || logs[n-1].Index < index {
		logs = append(logs, &raft.Log{Index: index, Type: raft.LogConfiguration}) // moves the index only
	}
	a.machine.ApplyBatch(logs)
}

// podsAt says what the pods of a topic were at a version: the sum of the events
// until then, in the words of names.
func (h *history) podsAt(t testing.TB, topic string, version uint64) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	values := map[string][]byte{}
	for _, a := range h.applied {
		for _, event := range a.events {
			if event.Index > version || !strings.HasPrefix(event.Key(), topic) {
				continue
			}
			delete(values, event.Key())
			if event.New != nil {
				values[event.Key()] = event.New.Value
			}
		}
	}
	var pods []example.Pod
	for _, key := range slices.Sorted(maps.Keys(values)) {
		pod := example.Pod{}
		if err := runtime.DecodeInto(codec, values[key], &pod); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	return names(pods)
}

// replaceable is a feed whose hub can be another one from now on.
type replaceable struct {
	mu  sync.Mutex
	hub *watch.Hub // guarded by mu
}

var _ storage.Feed = (*replaceable)(nil)

func (r *replaceable) replace(hub *watch.Hub) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hub = hub
}

func (r *replaceable) now() *watch.Hub {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hub
}

func (r *replaceable) Subscribe(topic string, from uint64) (*watch.Cursor, error) {
	return r.now().Subscribe(topic, from)
}

func (r *replaceable) Select(topic string, from uint64, value string, values func(fsm.Event) []string) (*watch.Selection, error) {
	return r.now().Select(topic, from, value, values)
}

func (r *replaceable) Since(topic string, after, upto uint64) ([]fsm.Event, error) {
	return r.now().Since(topic, after, upto)
}

func (r *replaceable) Floor(topic string) uint64 { return r.now().Floor(topic) }
