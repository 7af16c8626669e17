package life

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	workers = 4
	pace    = 50 * time.Millisecond // of a worker's rounds, at most
	// callPatience is how long a client goes from node to node with one call. A node without
	// a leader keeps a call for 10 s.
	callPatience = 20 * time.Second
)

// load is clients that write and read through all nodes, and take a call that failed to the
// next node. It knows what was acknowledged.
type load struct {
	name    string
	clients []kubernetes.Interface
	next    atomic.Int64
	calls   atomic.Int64
	again   atomic.Int64 // calls that needed another try

	mu     sync.Mutex
	pods   map[string]bool  // guarded by mu: created, and not deleted again
	leases map[string]int32 // guarded by mu: the transitions that were written last
	failed []error          // guarded by mu
	done   sync.WaitGroup
	stop   context.CancelFunc
}

func startLoad(ctx context.Context, name string, clients []kubernetes.Interface) *load {
	l := &load{name: name, clients: clients, pods: make(map[string]bool), leases: make(map[string]int32)}
	ctx, l.stop = context.WithCancel(ctx)
	for i := range workers {
		l.done.Go(func() { l.work(ctx, fmt.Sprintf("%s-%d", name, i)) })
	}
	return l
}

// end stops the load and compares what was acknowledged with what is there.
func (l *load) end(ctx context.Context, t *testing.T) {
	t.Helper()
	l.stop()
	l.done.Wait()
	for _, err := range l.failed {
		t.Error(err)
	}
	if len(l.failed) > 0 { // what they did is not known
		return
	}
	pods, err := l.clients[0].CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "load=" + l.name})
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, pod := range pods.Items {
		if there[pod.Name] = true; !l.pods[pod.Name] {
			t.Errorf("pod %s is there, and its delete was acknowledged", pod.Name)
		}
	}
	for name := range l.pods {
		if !there[name] {
			t.Errorf("pod %s is lost", name)
		}
	}
	for name, want := range l.leases {
		lease, err := l.clients[0].CoordinationV1().Leases("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || *lease.Spec.LeaseTransitions != want {
			t.Errorf("lease %s: %v, %v, want %d transitions", name, lease.Spec, err, want)
		}
	}
	t.Logf("%d calls, %d of them tried again on another node", l.calls.Load(), l.again.Load())
	if l.calls.Load() == 0 {
		t.Error("the load has called nothing")
	}
}

// work ends between two rounds, so that each call has an answer.
func (l *load) work(ctx context.Context, name string) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		if err := l.round(fmt.Sprintf("%s-%d", name, i), name, int32(i)); err != nil {
			l.mu.Lock()
			l.failed = append(l.failed, err)
			l.mu.Unlock()
			return
		}
	}
}

// round creates a pod, reads it, deletes every other one, and counts in a lease.
func (l *load) round(name, holder string, count int32) error {
	if err := l.call("create pod", func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods("default").Create(ctx, newPod(name, l.name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // by a try that had no answer
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	if err := l.call("read it on the next node", func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	if count%2 == 1 {
		if err := l.call("delete pod", func(ctx context.Context, c kubernetes.Interface) error {
			now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
			err := c.CoreV1().Pods("default").Delete(ctx, name, now)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	if err := l.call("write lease", func(ctx context.Context, c kubernetes.Interface) error {
		return setLease(ctx, c, holder, count)
	}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases[holder] = count; count%2 == 0 {
		l.pods[name] = true
	}
	return nil
}

// call tries until a node takes the call, each time on the next one.
func (l *load) call(what string, try func(context.Context, kubernetes.Interface) error) (err error) {
	l.calls.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	for tries := 0; ctx.Err() == nil; tries++ {
		if tries == 1 {
			l.again.Add(1)
		}
		client := l.clients[int(l.next.Add(1))%len(l.clients)]
		if err = try(ctx, client); err == nil || !retryable(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// retryable errors are those of a server that cannot now, and of the way to it: no answer to
// the call itself.
func retryable(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsConflict(err) // a lease whose write had no answer: it is read again
}

func newPod(name, load string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"load": load}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

func setLease(ctx context.Context, c kubernetes.Interface, name string, count int32) error {
	leases := c.CoordinationV1().Leases("default")
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{LeaseTransitions: &count}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.LeaseTransitions = &count
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
