package duties

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestSubsetsOf(t *testing.T) {
	subsets := subsetsOf([]string{
		"192.0.2.2:6443", "192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.3:7443", "[2001:db8::1]:6443",
		"127.0.0.1:6443", "[::1]:6443", "169.254.1.1:6443", "0.0.0.0:6443", "vm1:6443", "192.0.2.9", "192.0.2.9:port", "",
	})
	got := make(map[int32][]string)
	for _, subset := range subsets {
		for _, address := range subset.Addresses {
			got[subset.Ports[0].Port] = append(got[subset.Ports[0].Port], address.IP)
		}
	}
	if want := []string{"192.0.2.1", "192.0.2.2", "2001:db8::1"}; !slices.Equal(got[6443], want) {
		t.Errorf("port 6443: got %v, want %v", got[6443], want)
	}
	if want := []string{"192.0.2.3"}; !slices.Equal(got[7443], want) || len(got) != 2 {
		t.Errorf("got %v, want only %v beside port 6443", got, want)
	}
}

func TestPublishServersFollowsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var live atomic.Pointer[[]string]
		live.Store(&[]string{"192.0.2.1:6443", "192.0.2.2:6443"})
		ctx, cancel := context.WithCancel(t.Context())
		go PublishServers(ctx, client.CoreV1(), func() []string { return *live.Load() }, net.IPv4(10, 0, 0, 1), hclog.NewNullLogger())
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			endpoints, err := client.CoreV1().Endpoints(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, subset := range endpoints.Subsets {
				for _, address := range subset.Addresses {
					got = append(got, address.IP)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("endpoints are %v, want %v", got, want)
			}
		}
		expect("192.0.2.1", "192.0.2.2")
		service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || service.Spec.ClusterIP != "10.0.0.1" || service.Spec.Ports[0].TargetPort.IntVal != 6443 {
			t.Fatalf("service is %v, %v", service, err)
		}
		if policy := service.Spec.IPFamilyPolicy; policy == nil || *policy != corev1.IPFamilyPolicySingleStack {
			t.Errorf("the service's family policy is %v, not what upstream's servers give it", policy)
		}

		live.Store(&[]string{"192.0.2.2:6443", "192.0.2.3:6443"})
		time.Sleep(serversInterval)
		expect("192.0.2.2", "192.0.2.3")

		// Somebody deletes both; they come back.
		services, endpoints := client.CoreV1().Services(metav1.NamespaceDefault), client.CoreV1().Endpoints(metav1.NamespaceDefault)
		for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{services.Delete, endpoints.Delete} {
			if err := remove(ctx, "kubernetes", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(serversInterval)
		expect("192.0.2.2", "192.0.2.3")

		writes := len(client.Actions())
		time.Sleep(serversInterval)
		synctest.Wait()
		for _, action := range client.Actions()[writes:] {
			if action.GetVerb() != "get" {
				t.Errorf("with nothing to change it did %s %s", action.GetVerb(), action.GetResource().Resource)
			}
		}
		cancel()
	})
}
