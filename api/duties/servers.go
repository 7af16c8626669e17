package duties

//lint:file-ignore SA1019 Endpoints are deprecated, and what clients of default/kubernetes read.

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// serversService is where every client of Kubernetes looks for the API:
	// the Service kubernetes in the namespace default.
	serversService = "kubernetes"
	serversPort    = 443
	serversName    = "https"
	// serversInterval is how long a member that came or went is not told of.
	serversInterval = 2 * time.Second
	// mirrored keeps upstream's controller, where one runs, from copying these
	// endpoints into slices; upstream's servers set it too.
	mirrored = "endpointslice.kubernetes.io/skip-mirror"
)

// PublishServers keeps default/kubernetes, the Service and its Endpoints, at
// what live says: the API addresses, host:port, of the members that are up. From
// any of them a client can learn the others. It returns when ctx ends.
func PublishServers(ctx context.Context, client typedcore.CoreV1Interface, live func() []string, address net.IP, log hclog.Logger) {
	failing := false
	publish := func(ctx context.Context) {
		subsets := subsetsOf(live())
		err := ensureServersService(ctx, client, address, targetPort(subsets))
		if err == nil {
			err = ensureServersEndpoints(ctx, client, subsets)
		}
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn("cannot publish the members' addresses as default/kubernetes, trying again", "error", err)
		}
		failing = err != nil
	}
	wait.UntilWithContext(ctx, publish, serversInterval)
}

// subsetsOf makes endpoints of addresses, a subset for each port. What endpoints
// may not hold is left out: names, loopback and link-local addresses.
func subsetsOf(addresses []string) []corev1.EndpointSubset {
	byPort := make(map[int32][]corev1.EndpointAddress)
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		number, notNumber := strconv.ParseUint(port, 10, 16)
		ip, notIP := netip.ParseAddr(host)
		if err != nil || notNumber != nil || notIP != nil || !ip.IsGlobalUnicast() {
			continue
		}
		byPort[int32(number)] = append(byPort[int32(number)], corev1.EndpointAddress{IP: ip.String()})
	}
	var subsets []corev1.EndpointSubset
	for port, ips := range byPort {
		slices.SortFunc(ips, func(a, b corev1.EndpointAddress) int {
			return netip.MustParseAddr(a.IP).Compare(netip.MustParseAddr(b.IP))
		})
		subsets = append(subsets, corev1.EndpointSubset{
			Addresses: slices.Compact(ips),
			Ports:     []corev1.EndpointPort{{Name: serversName, Port: port, Protocol: corev1.ProtocolTCP}},
		})
	}
	slices.SortFunc(subsets, func(a, b corev1.EndpointSubset) int { return int(a.Ports[0].Port - b.Ports[0].Port) })
	return subsets
}

// targetPort is the one port of the servers, or the API's usual one.
func targetPort(subsets []corev1.EndpointSubset) int32 {
	if len(subsets) == 0 {
		return 6443
	}
	return subsets[0].Ports[0].Port
}

func ensureServersService(ctx context.Context, client typedcore.ServicesGetter, address net.IP, port int32) error {
	services := client.Services(metav1.NamespaceDefault)
	if _, err := services.Get(ctx, serversService, metav1.GetOptions{ResourceVersion: "0"}); !apierrors.IsNotFound(err) {
		return err
	}
	policy := corev1.IPFamilyPolicySingleStack
	_, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: serversService, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:      address.String(),
			IPFamilyPolicy: &policy, // as upstream's servers say, too
			Type:           corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: serversName, Protocol: corev1.ProtocolTCP, Port: serversPort, TargetPort: intstr.FromInt32(port),
			}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

func ensureServersEndpoints(ctx context.Context, client typedcore.EndpointsGetter, subsets []corev1.EndpointSubset) error {
	endpoints := client.Endpoints(metav1.NamespaceDefault)
	now, err := endpoints.Get(ctx, serversService, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		_, err = endpoints.Create(ctx, &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Name: serversService, Namespace: metav1.NamespaceDefault, Labels: map[string]string{mirrored: "true"},
			},
			Subsets: subsets,
		}, metav1.CreateOptions{})
	case err == nil && !reflect.DeepEqual(now.Subsets, subsets):
		now.Subsets = subsets
		_, err = endpoints.Update(ctx, now, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	return nil
}
