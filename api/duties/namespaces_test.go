package duties

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// api is a client of namespaces that can only create them.
type api struct {
	typedcore.NamespaceInterface
	have  []string
	tries int
	fail  func() error // called ahead of each creation
}

func (a *api) Namespaces() typedcore.NamespaceInterface { return a }

func (a *api) Create(_ context.Context, n *corev1.Namespace, _ metav1.CreateOptions) (*corev1.Namespace, error) {
	a.tries++
	if err := a.fail(); err != nil {
		return nil, err
	}
	if slices.Contains(a.have, n.Name) {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("namespaces"), n.Name)
	}
	a.have = append(a.have, n.Name)
	return n, nil
}

// TestEnsureNamespaces: what is missing is made, what is there is left, and a
// failure is tried again after the interval.
func TestEnsureNamespaces(t *testing.T) {
	for _, have := range [][]string{nil, {"kube-system"}, {"other", "default"}, SystemNamespaces} {
		synctest.Test(t, func(t *testing.T) {
			failures := 3
			a := &api{have: slices.Clone(have)}
			a.fail = func() error {
				if failures--; failures >= 0 {
					return errors.New("no leader")
				}
				return nil
			}
			start := time.Now()
			EnsureNamespaces(t.Context(), a, quiet)
			for _, name := range SystemNamespaces {
				if !slices.Contains(a.have, name) {
					t.Errorf("with %v at first: %s is missing", have, name)
				}
			}
			if want := len(SystemNamespaces) + 3; a.tries != want {
				t.Errorf("with %v at first: %d tries, want %d", have, a.tries, want)
			}
			if took := time.Since(start); took < 3*retryInterval || took > 5*retryInterval {
				t.Errorf("with %v at first: it took %s", have, took)
			}
		})
	}
}

// TestNamespacesOfAFormerLeader: without success it goes on until its context
// ends, and then it does stop.
func TestNamespacesOfAFormerLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := &api{fail: func() error { return errors.New("no leader") }}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			EnsureNamespaces(ctx, a, quiet)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("gave up")
		default:
		}
		cancel()
		<-stopped
		if tries := a.tries; tries < 50 || len(a.have) != 0 {
			t.Errorf("%d tries in a minute, made %v", tries, a.have)
		}
	})
}
