package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubernetes/pkg/kubelet/client"
)

// DefaultKubelet is how a registered node's kubelet is reached, as
// kube-apiserver does by default.
func DefaultKubelet() kubelet.KubeletClientConfig {
	return kubelet.KubeletClientConfig{
		Port:         10250,
		ReadOnlyPort: 10255,
		PreferredAddressTypes: []string{
			string(corev1.NodeHostName),
			string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
			string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
		},
		HTTPTimeout: 5 * time.Second,
	}
}
