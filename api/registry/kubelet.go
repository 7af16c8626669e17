package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubernetes/pkg/kubelet/client"
)

// Kubelet says how to talk TLS to the kubelets of registered nodes: files, as
// kube-apiserver's flags of the same names. Without a CA a kubelet's
// certificate is not checked; without a certificate none is shown to it.
type Kubelet struct {
	CAFile, CertFile, KeyFile string
}

// config completes k with kube-apiserver's defaults.
func (k Kubelet) config() kubelet.KubeletClientConfig {
	return kubelet.KubeletClientConfig{
		Port:         10250,
		ReadOnlyPort: 10255,
		PreferredAddressTypes: []string{
			string(corev1.NodeHostName),
			string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
			string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
		},
		HTTPTimeout:     5 * time.Second,
		TLSClientConfig: kubelet.KubeletTLSConfig{CAFile: k.CAFile, CertFile: k.CertFile, KeyFile: k.KeyFile},
	}
}
