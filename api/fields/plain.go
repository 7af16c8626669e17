package fields

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// plain says that nothing in an object makes structured-merge-diff panic: every number or
// string in it is one of the two. Kinds that are not listed have to be looked at by it.
func plain(obj runtime.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		return plainPod(&o.Spec)
	case *corev1.Service:
		for i := range o.Spec.Ports {
			if !plainPort(o.Spec.Ports[i].TargetPort) {
				return false
			}
		}
		return true
	case *corev1.Namespace, *corev1.Node, *corev1.Event, *eventsv1.Event, *coordinationv1.Lease:
		return true
	}
	return false
}

func plainPort(port intstr.IntOrString) bool {
	return port.Type == intstr.Int || port.Type == intstr.String
}

func plainPod(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if !plainContainer(&containers[i]) {
				return false
			}
		}
	}
	for i := range spec.EphemeralContainers {
		common := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		if !plainContainer(&common) {
			return false
		}
	}
	return true
}

func plainContainer(c *corev1.Container) bool {
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && !plainAction(probe.HTTPGet, probe.TCPSocket) {
			return false
		}
	}
	if c.Lifecycle == nil {
		return true
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil && !plainAction(hook.HTTPGet, hook.TCPSocket) {
			return false
		}
	}
	return true
}

func plainAction(get *corev1.HTTPGetAction, dial *corev1.TCPSocketAction) bool {
	return (get == nil || plainPort(get.Port)) && (dial == nil || plainPort(dial.Port))
}
