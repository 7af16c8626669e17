// Package duties is the work of the whole cluster that one node does: the
// leader. Each duty is a function that runs until its context ends, which is
// when the node stops leading; the next leader starts it anew. Duties use the
// API like any client, so what they do is in the log like everything else.
package duties

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SystemNamespaces exist from the start and cannot be deleted for long.
var SystemNamespaces = []string{
	metav1.NamespaceDefault,
	metav1.NamespaceSystem,
	metav1.NamespacePublic,
	corev1.NamespaceNodeLease,
}

// retryInterval is how soon a duty tries again what failed.
const retryInterval = time.Second

// EnsureNamespaces creates the system namespaces that are missing. It returns
// when they all exist.
func EnsureNamespaces(ctx context.Context, client typedcore.NamespacesGetter, log hclog.Logger) {
	for _, name := range SystemNamespaces {
		create := func(ctx context.Context) (bool, error) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err := client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				return true, nil
			}
			if ctx.Err() == nil {
				log.Warn("cannot create namespace, trying again", "namespace", name, "error", err)
			}
			return false, nil
		}
		if err := wait.PollUntilContextCancel(ctx, retryInterval, true, create); err != nil {
			return // no longer the leader
		}
	}
}
