package main

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// TestRecorders has both of client-go's recorders say things twice, each on a
// node of its own. A third node shows one event of each, that was seen twice,
// and the same through both APIs.
func TestRecorders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	var clients []*kubernetes.Clientset
	for i := range c.nodes {
		clients = append(clients, kubernetes.NewForConfigOrDie(c.clientConfig(i)))
	}
	pod, err := clients[0].CoreV1().Pods("default").Create(t.Context(), newPodNamed("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := record.NewBroadcaster(record.WithContext(t.Context()))
	old.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: clients[0].CoreV1().Events("")})
	t.Cleanup(old.Shutdown)
	core := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old-tester", Host: "host-a"})
	current := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients[1].EventsV1()})
	if err := current.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(current.Shutdown)
	group := current.NewRecorder(scheme.Scheme, "example.com/tester")

	want := []shownEvent{{
		kind: "Warning", reason: "Failed", text: "it broke again", about: "Pod default/web",
		source: "old-tester", controller: "old-tester", count: 1,
	}, {
		kind: "Normal", reason: "Started", text: "it runs again", about: "Pod default/web",
		controller: "example.com/tester", action: "Start",
	}}
	for range 2 {
		core.Eventf(pod, "Warning", "Failed", "it broke %s", "again")
		group.Eventf(pod, nil, "Normal", "Started", "Start", "it runs %s", "again")
		until(t, func() error { return shows(t, clients[2], want) })
		want[0].count, want[1].series = 2, 2
	}
	c.checkEqual()
}

func newPodNamed(name string) *corev1.Pod {
	pod := newPod()
	pod.Name = name
	return pod
}

// shownEvent is what an event says, whatever its fields are called.
type shownEvent struct {
	kind, reason, text, about, source, controller, action string
	count, series                                         int32
}

func shows(t *testing.T, client kubernetes.Interface, want []shownEvent) error {
	t.Helper()
	core, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	group, err := client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	var byCore, byGroup []shownEvent
	for _, e := range core.Items {
		shown := shownEvent{
			kind: e.Type, reason: e.Reason, text: e.Message, about: describe(e.InvolvedObject), source: e.Source.Component,
			controller: e.ReportingController, action: e.Action, count: e.Count,
		}
		if e.Series != nil {
			shown.series = e.Series.Count
		}
		byCore = append(byCore, shown)
	}
	for _, e := range group.Items {
		shown := shownEvent{
			kind: e.Type, reason: e.Reason, text: e.Note, about: describe(e.Regarding), source: e.DeprecatedSource.Component,
			controller: e.ReportingController, action: e.Action, count: e.DeprecatedCount,
		}
		if e.Series != nil {
			shown.series = e.Series.Count
		}
		byGroup = append(byGroup, shown)
	}
	if !slices.Equal(byCore, want) || !slices.Equal(byGroup, want) {
		return fmt.Errorf("v1 shows %+v\nevents.k8s.io/v1 shows %+v\nwant %+v", byCore, byGroup, want)
	}
	return nil
}

func describe(ref corev1.ObjectReference) string {
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}
