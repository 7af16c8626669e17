package main

import (
	"crypto/sha256"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

const (
	namespace  = "bench"
	podsPath   = "/api/v1/namespaces/" + namespace + "/pods"
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
	// podsANode is the most that Kubernetes supports.
	podsANode = 110
)

func podName(i int) string  { return fmt.Sprintf("web-%06d", i) }
func podPath(i int) string  { return podsPath + "/" + podName(i) }
func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// newPod is like a pod of a Deployment: two containers with probes, volumes, resources. Stored, with what
// the server adds, it has about 3 KB.
func newPod(i int) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(i), Namespace: namespace,
			Labels:      map[string]string{"app": "web", "pod-template-hash": "6c7b9d5f4b", "shard": fmt.Sprint(i % 100)},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName(i / podsANode), RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{container("web", 8080), container("proxy", 9090)},
			Volumes: []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
			},
		},
	}
}

func container(name string, port int) corev1.Container {
	probe := &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port), Scheme: corev1.URISchemeHTTP}}}
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return corev1.Container{
		Name: name, Image: fmt.Sprintf("registry.example.com/shop/%s@sha256:%x", name, sha256.Sum256([]byte(name))),
		Args: []string{"--listen=:8080", "--config=/etc/web/config.yaml", "--log-level=info"},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			{Name: "DATABASE_URL", Value: "postgres://shop.database.svc.cluster.local:5432/shop"},
		},
		Ports:         []corev1.ContainerPort{{Name: name, ContainerPort: int32(port), Protocol: corev1.ProtocolTCP}},
		Resources:     corev1.ResourceRequirements{Requests: resources, Limits: resources},
		VolumeMounts:  []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}, {Name: "config", MountPath: "/etc/web", ReadOnly: true}},
		LivenessProbe: probe, ReadinessProbe: probe,
	}
}

// status is a strategic merge patch, what a kubelet sends when a pod runs.
func status(round int) []byte {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","lastProbeTime":null,"lastTransitionTime":%q}`, kind, now)
	}
	container := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"ready":true,"started":true,"restartCount":%d,"image":"i","imageID":"i","containerID":"containerd://1","state":{"running":{"startedAt":%q}}}`, name, round, now)
	}
	return fmt.Appendf(nil, `{"status":{"phase":"Running","podIP":"10.0.0.1","hostIP":"198.51.100.1","startTime":%q,"conditions":[%s,%s,%s],"containerStatuses":[%s,%s]}}`,
		now, condition("Initialized"), condition("ContainersReady"), condition("Ready"), container("web"), container("proxy"))
}

// applied is what a controller owns of a pod by server-side apply.
func applied(i, round int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"labels":{"tier":"front","owner":"shop"},"annotations":{"example.com/revision":"%d"}}}`,
		podName(i), namespace, round)
}

// newLease is a node's, as its kubelet renews it.
func newLease(i int) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Namespace: namespace},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(nodeName(i)), LeaseDurationSeconds: ptr.To[int32](40),
			RenewTime: ptr.To(metav1.NowMicro())},
	}
}

// wire encodes and decodes protobuf. The objects name their own kind.
var wire = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func encode(object runtime.Object) ([]byte, error) { return runtime.Encode(wire, object) }
