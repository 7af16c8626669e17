package registry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"kontiki/api/storage"
)

const (
	// syncWithin is how long a write waits for a node to have its namespaces, as long as
	// one waits for a leader. Plugins would wait that long too, but end with a 403, which
	// says that the same write will never be allowed.
	syncWithin = 10 * time.Second
	syncPause  = 50 * time.Millisecond
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()

// patient is an admission chain that does not judge before it knows anything. A node
// that was started without a quorum has no namespaces to judge by: that is nobody's
// mistake, so it is a 503.
type patient struct {
	Admission
	synced func() bool
}

// Admission judges writes, and may change them before. A chain of plugins does.
type Admission interface {
	admission.MutationInterface
	admission.ValidationInterface
}

func newPatient(plugins Admission, synced func() bool) *patient {
	return &patient{plugins, synced}
}

// Admit implements admission.MutationInterface.
func (p *patient) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.ready(ctx, a); err != nil {
		return err
	}
	return undecided(p.Admission.Admit(ctx, a, o))
}

// Validate implements admission.ValidationInterface.
func (p *patient) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.ready(ctx, a); err != nil {
		return err
	}
	return undecided(p.Admission.Validate(ctx, a, o))
}

// ready waits where a plugin would wait: deletions, namespaces, and what is in none are
// judged without.
func (p *patient) ready(ctx context.Context, a admission.Attributes) error {
	namespaced := a.GetNamespace() != "" && a.GetKind().GroupKind() != namespaceKind
	if !namespaced || a.GetOperation() == admission.Delete || p.synced() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	tick := time.NewTicker(syncPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return storage.Unavailable("this node has just started and does not know the namespaces yet; use another one")
		case <-tick.C:
			if p.synced() {
				return nil
			}
		}
	}
}

// undecided: what a plugin asked the cluster for and was not told, it calls an internal error.
// Nothing was written, and the next time it may be told.
func undecided(err error) error {
	if !apierrors.IsInternalError(err) {
		return err
	}
	return storage.Unavailable(fmt.Sprintf("whether the write is admitted could not be decided: %v", err))
}
