package storage_test

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/apis/example"

	"kontiki/api/storage"
	"kontiki/fsm"
)

// TestAnswerToARetry: when the leader is lost while it has a command, the node
// sends the command again, and the answer to that names no winner. That nobody
// is named does not mean that nobody is there.
func TestAnswerToARetry(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]action{"update": setLabel("3"), "update or create": putLabel("3"), "delete": removeAny} {
		t.Run(name, func(t *testing.T) {
			leader, late := newReplicas(1)
			exists(t, leader.store(t))
			late[0].catchUp()
			changed(t, leader.store(t))
			backend := storage.Backend{Proposer: &retrying{Proposer: late[0]}, State: late[0].machine, Feed: late[0].hub}
			if err := do(podStore(t, backend, "/core", codec), &example.Pod{}); err != nil {
				t.Errorf("the object is there, and yet: %v", err)
			}
		})
	}
}

// retrying forgets, the first time, what the command met.
type retrying struct {
	storage.Proposer
	done bool
}

func (r *retrying) Propose(ctx context.Context, cmd fsm.Command) (fsm.Result, error) {
	result, err := r.Proposer.Propose(ctx, cmd)
	if !r.done {
		result.Current = nil
	}
	r.done = true
	return result, err
}

// TestUnchangedWritesNothing: an update that changes nothing keeps the version
// and writes no entry, whichever node it goes through.
func TestUnchangedWritesNothing(t *testing.T) {
	t.Parallel()
	leader, late := newReplicas(1)
	created := mustCreate(t, leader.store(t), labelled("a", "1"))
	for _, n := range []*replica{leader, late[0]} {
		same := mustSet(t, n.store(t), "a", func(*example.Pod) {})
		if diff := difference(created, same); diff != "" {
			t.Error(diff)
		}
	}
	if leader.length() != 1 {
		t.Errorf("the log has %d entries, want 1", leader.length())
	}
}
