package storage_test

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"kontiki/api/storage"
	"kontiki/fsm"
	"kontiki/watch"
)

// replicas are nodes without a network: one log in memory, and state machines
// that apply it when the test says so.
type replicas struct {
	mu   sync.Mutex
	log  []*raft.Log // guarded by mu
	all  []*replica
	asks int // guarded by mu; read indexes asked for
}

// replica is one of them. A late one applies the log only when it has to: when
// it proposes, when it asks for a read index, when the test calls catchUp.
type replica struct {
	*replicas
	late    bool
	fail    error // what Propose and ReadIndex return, if set
	machine *fsm.FSM
	hub     *watch.Hub
	history *history
}

var _ storage.Proposer = (*replica)(nil)

// newReplicas makes one that is always up to date, and late ones.
func newReplicas(late int) (*replica, []*replica) {
	r := &replicas{}
	for i := range 1 + late {
		n := &replica{replicas: r, late: i > 0, hub: watch.NewHub(watch.Config{}), history: &history{}}
		n.machine = fsm.New(n.hub, n.history)
		r.all = append(r.all, n)
	}
	return r.all[0], r.all[1:]
}

func (n *replica) store(t testing.TB) *storage.Store { return n.storeOn(t, n.hub) }

func (n *replica) storeOn(t testing.TB, feed storage.Feed) *storage.Store {
	backend := n.backend()
	backend.Feed = feed
	return podStore(t, backend, "/core", codec)
}

func (n *replica) backend() storage.Backend {
	return storage.Backend{Proposer: n, State: n.machine, Feed: n.hub}
}

// Propose implements storage.Proposer.
func (n *replica) Propose(_ context.Context, cmd fsm.Command) (result fsm.Result, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return fsm.Result{}, n.fail
	}
	index := uint64(len(n.log) + 1)
	binary.BigEndian.PutUint64(cmd.ID[:], index)
	cmd.Base = n.machine.Index()
	n.log = append(n.log, &raft.Log{Index: index, Type: raft.LogCommand, Data: cmd.Append(nil)})
	for _, other := range n.all {
		if !other.late {
			result = other.applyLocked()
		}
	}
	if n.late {
		result = n.applyLocked()
	}
	return result, nil
}

// ReadIndex implements storage.Proposer.
func (n *replica) ReadIndex(context.Context) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks++
	if n.fail != nil {
		return 0, n.fail
	}
	n.applyLocked()
	return uint64(len(n.log)), nil
}

// catchUp applies the log as it is.
func (n *replica) catchUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.applyLocked()
}

// applyLocked returns the result of the last entry.
func (n *replica) applyLocked() (last fsm.Result) {
	for _, entry := range n.log[n.machine.Index():] {
		last, _ = n.machine.Apply(entry).(fsm.Result)
	}
	return last
}

// advance moves the index by an entry that is not a command.
func (n *replica) advance() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, &raft.Log{Index: uint64(len(n.log) + 1), Type: raft.LogConfiguration})
	n.applyLocked()
}

// asked returns how many read indexes were asked for.
func (n *replica) asked() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asks
}

// length returns the length of the log.
func (n *replica) length() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.log)
}

// smallHub is a feed of this node whose window holds that many events.
func (n *replica) smallHub(events int) *watch.Hub {
	hub := watch.NewHub(watch.Config{MaxEvents: events})
	n.history.follow(hub, 0)
	return hub
}
