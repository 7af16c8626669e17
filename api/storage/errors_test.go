package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/cluster"
)

// TestErrors is what a client is told when the cluster does not do what it was
// asked: whether to try again, when, and whether the write may have happened.
func TestErrors(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name        string
		err         error
		write, read int // status codes, 0 if it does not end like this
		retry       int // seconds
		reason      metav1.StatusReason
	}{
		{"no leader", cluster.ErrNoLeader, 503, 503, 1, metav1.StatusReasonServiceUnavailable},
		{"no leader in time", fmt.Errorf("%w: %w", cluster.ErrNoLeader, context.DeadlineExceeded), 503, 503, 1, metav1.StatusReasonServiceUnavailable},
		{"no quorum", fmt.Errorf("%w: gave up after 10s", cluster.ErrNoQuorum), 0, 503, 1, metav1.StatusReasonServiceUnavailable},
		{"no quorum in time", fmt.Errorf("%w: %w", cluster.ErrNoQuorum, context.DeadlineExceeded), 0, 503, 1, metav1.StatusReasonServiceUnavailable},
		{"closed", cluster.ErrClosed, 503, 503, 1, metav1.StatusReasonServiceUnavailable},
		{"out of time", context.DeadlineExceeded, 504, 504, 1, metav1.StatusReasonTimeout},
		{"client has gone", context.Canceled, 504, 504, 1, metav1.StatusReasonTimeout},
		{"committed, not seen here", fmt.Errorf("%w: %w", cluster.ErrBehind, context.DeadlineExceeded), 504, 504, 1, metav1.StatusReasonTimeout},
		{"outcome unknown", fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, context.DeadlineExceeded), 504, 0, 1, metav1.StatusReasonTimeout},
		{"outcome unknown, closed", fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, cluster.ErrClosed), 504, 0, 1, metav1.StatusReasonTimeout},
		{"disk full", fmt.Errorf("%w: node n1 has 3 MiB free", cluster.ErrDiskFull), 503, 0, 0, metav1.StatusReasonServiceUnavailable},
		{"too large", fmt.Errorf("%w: 4 MiB", cluster.ErrTooLarge), 413, 0, 0, metav1.StatusReasonRequestEntityTooLarge},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			leader, _ := newReplicas(0)
			store := leader.store(t)
			mustCreate(t, store, labelled("a", "1"))
			leader.fail = row.err
			if row.write != 0 {
				for verb, err := range writes(store) {
					checkError(t, verb, err, row.write, row.retry, row.reason)
				}
			}
			if row.read != 0 {
				for verb, err := range reads(store) {
					checkError(t, verb, err, row.read, row.retry, row.reason)
				}
			}
			// What needs no leader goes on.
			if _, err := get(store, "a", "0"); err != nil {
				t.Errorf("get at 0: %v", err)
			}
			if _, err := list(store, upstream.ListOptions{ResourceVersion: "1"}); err != nil {
				t.Errorf("list at 1: %v", err)
			}
			expect(t, mustWatch(t, store, upstream.ListOptions{ResourceVersion: "0"}), "ADDED a=1@1")
		})
	}
}

func writes(store upstream.Interface) map[string]error {
	return map[string]error{
		"create": store.Create(context.Background(), keyOf("b"), newPod("b"), &example.Pod{}, 0),
		"update": set(store, "a", &example.Pod{}, label("2")),
		"delete": remove(store, "a", &example.Pod{}, nil),
	}
}

func reads(store upstream.Interface) map[string]error {
	_, getErr := get(store, "a", "")
	_, listErr := list(store, upstream.ListOptions{})
	_, currentErr := store.GetCurrentResourceVersion(context.Background())
	var watchErr error
	if w, err := store.Watch(context.Background(), "/pods/", complete(upstream.ListOptions{})); err != nil {
		watchErr = fmt.Errorf("a watch fails in its stream, not with %w", err)
	} else if event := <-w.ResultChan(); event.Type == "ERROR" {
		watchErr = &apierrors.StatusError{ErrStatus: *event.Object.(*metav1.Status)}
	}
	return map[string]error{
		"get": getErr, "list": listErr, "watch": watchErr, "current version": currentErr,
		"update of what is not there": set(store, "b", &example.Pod{}, label("2")),
		"update that changes nothing": set(store, "a", &example.Pod{}, func(*example.Pod) {}),
	}
}

func checkError(t *testing.T, verb string, err error, want, retry int, reason metav1.StatusReason) {
	t.Helper()
	seconds, _ := apierrors.SuggestsClientDelay(err)
	if code(err) != want || seconds != retry || apierrors.ReasonForError(err) != reason {
		t.Errorf("%s: got %d %s, come back after %d s; want %d %s, %d s (%v)",
			verb, code(err), apierrors.ReasonForError(err), seconds, want, reason, retry, err)
	}
}

// TestOtherErrors pass as they are: nobody but a developer can do something
// about them.
func TestOtherErrors(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	leader.fail = cluster.ErrInvalid
	err := leader.store(t).Create(context.Background(), keyOf("a"), newPod("a"), &example.Pod{}, 0)
	if !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestConfig is refused when keys would end up in another resource's topic.
func TestConfig(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct{ root, prefix string }{
		{"", "/pods"}, {"core", "/pods"}, {"/core/v1", "/pods"}, {"/core", ""}, {"/core", "pods"}, {"/core", "/pods/"}, {"/", "/pods"}, {"/core", "/"},
	} {
		if err := tryStore(bad.root, bad.prefix); err == nil {
			t.Errorf("root %q with prefix %q was taken", bad.root, bad.prefix)
		}
	}
}
