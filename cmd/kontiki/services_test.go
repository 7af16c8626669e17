package main

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

func (c *testCluster) services(i int) typedcore.ServiceInterface {
	return kubernetes.NewForConfigOrDie(c.clientConfig(i)).CoreV1().Services(metav1.NamespaceDefault)
}

func newService(name string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// TestServicesShareTheirRanges makes services through all nodes at a time: no
// address and no port may be given out twice.
func TestServicesShareTheirRanges(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.waitReady()
	const each = 10
	made := make(chan *corev1.Service, 3*each)
	var clients sync.WaitGroup
	for i := range 3 {
		services := c.services(i)
		clients.Go(func() {
			for n := range each {
				service, err := services.Create(t.Context(), newService(fmt.Sprintf("s%d-%d", i, n), corev1.ServiceTypeNodePort), metav1.CreateOptions{})
				if err != nil {
					t.Errorf("through node %d: %v", i, err)
					continue
				}
				made <- service
			}
		})
	}
	clients.Wait()
	close(made)
	addresses, ports := make(map[string]string), make(map[int32]string)
	for s := range made {
		ip, port := s.Spec.ClusterIP, s.Spec.Ports[0].NodePort
		if other, taken := addresses[ip]; taken || ip == "" {
			t.Errorf("%s and %s both have address %q", s.Name, other, ip)
		}
		if other, taken := ports[port]; taken || port == 0 {
			t.Errorf("%s and %s both have port %d", s.Name, other, port)
		}
		addresses[ip], ports[port] = s.Name, s.Name
	}
}

func TestServiceAddressesAreTakenAndGivenBack(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.waitReady()
	create := func(i int, name string) error {
		service := newService(name, corev1.ServiceTypeClusterIP)
		service.Spec.ClusterIP = "10.0.0.77"
		_, err := c.services(i).Create(t.Context(), service, metav1.CreateOptions{})
		return err
	}
	if err := create(0, "first"); err != nil {
		t.Fatal(err)
	}
	if err := create(1, "second"); !apierrors.IsInvalid(err) {
		t.Errorf("a second service with the address: %v, want Invalid", err)
	}
	if err := c.services(2).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := create(1, "second"); err != nil {
		t.Errorf("after the first one is gone: %v", err)
	}
}

// waitServersPublished waits for default/kubernetes, which comes soon after the
// first leader.
func (c *testCluster) waitServersPublished() {
	c.t.Helper()
	client := kubernetes.NewForConfigOrDie(c.clientConfig(0)).CoreV1()
	until(c.t, func() error {
		_, err := client.Endpoints(metav1.NamespaceDefault).Get(c.t.Context(), "kubernetes", metav1.GetOptions{})
		return err
	})
}

func TestTheServersAreAService(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.waitServersPublished()
	service, err := c.services(0).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if service.Spec.ClusterIP != "10.0.0.1" {
		t.Errorf("its address is %q, want the first of the range", service.Spec.ClusterIP)
	}
}
