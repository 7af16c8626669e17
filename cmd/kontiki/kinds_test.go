package main

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a row of the table of what is served: how to address it and how to
// make one.
type kind struct {
	schema.GroupVersionKind
	resource      string
	clusterScoped bool
	noCollection  bool // deletecollection is not a verb of it
	make          func() runtime.Object
}

// kinds is everything that is served; TestKindsAreComplete compares it with
// discovery.
var kinds = []kind{
	{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", true, true, func() runtime.Object { return &corev1.Namespace{} }},
	{corev1.SchemeGroupVersion.WithKind("Node"), "nodes", true, false, func() runtime.Object {
		return &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}}
	}},
	{corev1.SchemeGroupVersion.WithKind("Pod"), "pods", false, false, func() runtime.Object { return newPod() }},
	{corev1.SchemeGroupVersion.WithKind("Endpoints"), "endpoints", false, false, func() runtime.Object {
		//lint:ignore SA1019 deprecated and served
		return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Port: 80}},
		}}}
	}},
	{corev1.SchemeGroupVersion.WithKind("Service"), "services", false, false, func() runtime.Object {
		return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}},
	{corev1.SchemeGroupVersion.WithKind("Event"), "events", false, false, func() runtime.Object {
		return &corev1.Event{Reason: "Tested", Message: "through core", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p"}}
	}},
	{eventsv1.SchemeGroupVersion.WithKind("Event"), "events", false, false, func() runtime.Object {
		return &eventsv1.Event{
			EventTime: metav1.NewMicroTime(time.Unix(1700000000, 0)), ReportingController: "example.com/test", ReportingInstance: "test-1",
			Action: "Test", Reason: "Tested", Type: "Normal", Note: "through events",
		}
	}},
	{coordinationv1.SchemeGroupVersion.WithKind("Lease"), "leases", false, false, func() runtime.Object {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr("me"), LeaseDurationSeconds: ptr(int32(10))}}
	}},
}

func newPod() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr(int64(0)),
		Containers:                    []corev1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1"}},
	}}
}

func ptr[T any](value T) *T { return &value }

func (k kind) gvr() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

// String is the resource as kubectl would have it.
func (k kind) String() string {
	if k.Group == "" {
		return k.resource
	}
	return k.resource + "." + k.Group
}

// named makes an object, complete with its kind. The labels find it again.
func (k kind) named(namespace, name string, labels map[string]string) runtime.Object {
	obj := k.make()
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	m := metaOf(obj)
	m.SetName(name)
	m.SetLabels(labels)
	if !k.clusterScoped {
		m.SetNamespace(namespace)
	}
	switch event := obj.(type) { // events are about something in their own namespace
	case *corev1.Event:
		event.InvolvedObject.Namespace = namespace
	case *eventsv1.Event:
		event.Regarding = corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "p"}
	}
	return obj
}

// path is where the collection is served.
func (k kind) path(namespace string) string {
	prefix := "/api/" + k.Version
	if k.Group != "" {
		prefix = "/apis/" + k.Group + "/" + k.Version
	}
	if k.clusterScoped {
		return prefix + "/" + k.resource
	}
	return prefix + "/namespaces/" + namespace + "/" + k.resource
}

func metaOf(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return m
}
