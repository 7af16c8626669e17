package registry

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// open is a chain that lets everything pass, and counts it.
type open struct{ judged int }

func (*open) Handles(admission.Operation) bool { return true }

func (o *open) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	o.judged++
	return nil
}

func (o *open) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	o.judged++
	return nil
}

func attributes(kind, namespace string, operation admission.Operation) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind(kind), namespace, "x",
		corev1.SchemeGroupVersion.WithResource("x"), "", operation, nil, false, nil)
}

// TestUnreadyAdmission: a node that knows no namespaces refuses a write in one with a 503
// that names when to come back, after the time that a write has; upstream's plugins say 403,
// which is final.
func TestUnreadyAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugins := &open{}
		chain := newPatient(plugins, func() bool { return false })
		for _, ask := range []func(context.Context, admission.Attributes, admission.ObjectInterfaces) error{chain.Admit, chain.Validate} {
			began := time.Now()
			err := ask(t.Context(), attributes("Pod", "default", admission.Create), nil)
			status, ok := err.(apierrors.APIStatus)
			if !ok || status.Status().Code != http.StatusServiceUnavailable {
				t.Errorf("answer %v, want 503", err)
			}
			if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds < 1 {
				t.Errorf("%v does not say when to come back", err)
			}
			if waited := time.Since(began); waited != syncWithin {
				t.Errorf("waited %s, want %s", waited, syncWithin)
			}
		}
		if plugins.judged > 0 {
			t.Error("judged before anything is known")
		}
		for _, a := range []admission.Attributes{
			attributes("Pod", "default", admission.Delete),
			attributes("Node", "", admission.Create),
			attributes("Namespace", "default", admission.Update),
		} {
			if err := chain.Admit(t.Context(), a, nil); err != nil {
				t.Errorf("%s of a %s: %v", a.GetOperation(), a.GetKind().Kind, err)
			}
		}
	})
}

// TestAdmissionBecomesReady: a write that comes too early waits.
func TestAdmissionBecomesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, plugins := time.Now(), &open{}
		chain := newPatient(plugins, func() bool { return time.Since(began) >= time.Second })
		if err := chain.Admit(t.Context(), attributes("Pod", "default", admission.Create), nil); err != nil || plugins.judged != 1 {
			t.Errorf("%v, judged %d times", err, plugins.judged)
		}
	})
}

// TestAdmissionIsPatient: it is the chain of all plugins that waits, for their informers.
func TestAdmissionIsPatient(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := NewAdmission(client, informers.NewSharedInformerFactory(client, 0), Stored{}) // never started
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = chain.(admission.MutationInterface).Admit(ctx, attributes("Pod", "default", admission.Create), nil)
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%v, want a 503", err)
	}
}
