package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestSubresources goes through those of pods, nodes and namespaces with the
// typed clientset, in both of its encodings, each on a follower.
func TestSubresources(t *testing.T) {
	c := newCluster(t, 3, nil)
	node := c.followers()[0]
	for name, contentType := range map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		config := c.clientConfig(node)
		config.ContentType, config.AcceptContentTypes = contentType, contentType
		s := &subresources{ctx: t.Context(), client: kubernetes.NewForConfigOrDie(config), namespace: name}
		s.pods = s.client.CoreV1().Pods(name)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for of, try := range map[string]func() error{
			"pod status": s.podStatus, "ephemeral containers": s.ephemeral, "resize": s.resize, "binding": s.binding,
			"eviction": s.eviction, "log": s.log, "node status": s.nodeStatus, "namespace status and finalize": s.finalize,
			"patches of lists": s.listPatches,
		} {
			if err := try(); err != nil {
				t.Errorf("%s, %s: %v", name, of, err)
			}
		}
	}
	c.checkEqual()
}

type subresources struct {
	ctx       context.Context
	client    kubernetes.Interface
	pods      typedcore.PodInterface
	namespace string
}

func (s *subresources) pod(name string) (*corev1.Pod, error) {
	pod := newPod()
	pod.Name = name
	return s.pods.Create(s.ctx, pod, metav1.CreateOptions{})
}

// podStatus: status changes by its subresource only, the rest only without it.
func (s *subresources) podStatus() error {
	pod, err := s.pod("status")
	if err != nil {
		return err
	}
	pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "ignored"
	if pod, err = s.pods.UpdateStatus(s.ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName != "" {
		return fmt.Errorf("phase %s, node %q", pod.Status.Phase, pod.Spec.NodeName)
	}
	pod.Status.Phase, pod.Labels = corev1.PodFailed, map[string]string{"taken": "yes"}
	if pod, err = s.pods.Update(s.ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Labels["taken"] != "yes" {
		return fmt.Errorf("phase %s, labels %v", pod.Status.Phase, pod.Labels)
	}
	pod, err = s.pods.Patch(s.ctx, pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	if err == nil && (len(pod.Status.Conditions) != 1 || pod.Status.Phase != corev1.PodRunning) {
		err = fmt.Errorf("patched to %+v", pod.Status)
	}
	return err
}

func (s *subresources) ephemeral() error {
	pod, err := s.pod("ephemeral")
	if err != nil {
		return err
	}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug:1", ImagePullPolicy: "Always", TerminationMessagePolicy: "File"},
	}}
	if _, err := s.pods.Update(s.ctx, pod, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("taken without the subresource: %v", err)
	}
	pod, err = s.pods.UpdateEphemeralContainers(s.ctx, pod.Name, pod, metav1.UpdateOptions{})
	if err == nil && len(pod.Spec.EphemeralContainers) != 1 {
		err = fmt.Errorf("not taken: %+v", pod.Spec)
	}
	return err
}

func (s *subresources) resize() error {
	pod := newPod()
	pod.Name = "resize"
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}
	pod, err := s.pods.Create(s.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
	if _, err := s.pods.Update(s.ctx, pod, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("taken without the subresource: %v", err)
	}
	pod, err = s.pods.UpdateResize(s.ctx, pod.Name, pod, metav1.UpdateOptions{})
	if err == nil && pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "200m" {
		err = fmt.Errorf("not taken: %+v", pod.Spec)
	}
	return err
}

// binding puts a pod on a node, once.
func (s *subresources) binding() error {
	for name, bind := range map[string]func(*corev1.Binding) error{
		"binding": func(b *corev1.Binding) error { return s.pods.Bind(s.ctx, b, metav1.CreateOptions{}) },
		"legacy-binding": func(b *corev1.Binding) error {
			return s.client.CoreV1().RESTClient().Post().Namespace(s.namespace).Resource("bindings").Body(b).Do(s.ctx).Error()
		},
	} {
		if _, err := s.pod(name); err != nil {
			return err
		}
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-a"}}
		if err := bind(binding); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pod, err := s.pods.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName != "node-a" {
			return fmt.Errorf("%s: bound to %q: %w", name, pod.Spec.NodeName, err)
		}
		if err := bind(binding); !apierrors.IsConflict(err) {
			return fmt.Errorf("%s: bound twice: %w", name, err)
		}
	}
	return nil
}

func (s *subresources) eviction() error {
	if _, err := s.pod("eviction"); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "eviction", Namespace: s.namespace}}
	if err := s.pods.EvictV1(s.ctx, eviction); err != nil {
		return err
	}
	if _, err := s.pods.Get(s.ctx, "eviction", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("it is still there: %v", err)
	}
	if err := s.pods.EvictV1(s.ctx, eviction); !apierrors.IsNotFound(err) {
		return fmt.Errorf("evicted what is not there: %v", err)
	}
	return nil
}

// log: a pod without a node has none, one on a node has what the node's kubelet
// says.
func (s *subresources) log() error {
	if _, err := s.pod("log"); err != nil {
		return err
	}
	logs := func() ([]byte, error) {
		return s.pods.GetLogs("log", &corev1.PodLogOptions{Container: "b", Follow: true}).DoRaw(s.ctx)
	}
	if text, err := logs(); err != nil || len(text) > 0 {
		return fmt.Errorf("before it has a node: %q, %w", text, err)
	}
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s says hello\n", r.URL)
	}))
	defer kubelet.Close()
	node := "kubelet-" + s.namespace
	if err := s.registerKubelet(node, kubelet.URL); err != nil {
		return err
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "log"}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := s.pods.Bind(s.ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	want := fmt.Sprintf("/containerLogs/%s/log/b?follow=true says hello\n", s.namespace)
	text, err := logs()
	if err != nil || string(text) != want {
		return fmt.Errorf("%q, want %q, %w", text, want, err)
	}
	if _, err := s.pods.GetLogs("log", &corev1.PodLogOptions{Container: "nope"}).DoRaw(s.ctx); !apierrors.IsBadRequest(err) {
		return fmt.Errorf("log of no container: %w", err)
	}
	return nil
}

// registerKubelet makes a node whose kubelet listens there.
func (s *subresources) registerKubelet(name, address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	host, service, err := net.SplitHostPort(at.Host)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return err
	}
	node, err := s.client.CoreV1().Nodes().Create(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	_, err = s.client.CoreV1().Nodes().UpdateStatus(s.ctx, node, metav1.UpdateOptions{})
	return err
}

func (s *subresources) nodeStatus() error {
	nodes := s.client.CoreV1().Nodes()
	name := "status-" + s.namespace
	node, err := nodes.Create(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "node.kubernetes.io/not-ready" {
		return fmt.Errorf("a new node is not tainted: %+v", node.Spec.Taints)
	}
	node.Spec.Unschedulable = true
	node.Status.Phase = corev1.NodeRunning
	if node, err = nodes.UpdateStatus(s.ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if node.Status.Phase != corev1.NodeRunning || node.Spec.Unschedulable {
		return fmt.Errorf("updated to %+v", node)
	}
	node, err = nodes.PatchStatus(s.ctx, name, []byte(`{"status":{"phase":"Terminated"}}`))
	if err == nil && node.Status.Phase != corev1.NodeTerminated {
		err = fmt.Errorf("patched to %+v", node.Status)
	}
	return err
}

// finalize: who owns a finalizer may take it away, and then the namespace goes.
func (s *subresources) finalize() error {
	namespaces := s.client.CoreV1().Namespaces()
	name := "finalize-" + s.namespace
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/mine"}}}
	namespace, err := namespaces.Create(s.ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	namespace.Status.Conditions = []corev1.NamespaceCondition{{Type: "Tested", Status: corev1.ConditionTrue}}
	if namespace, err = namespaces.UpdateStatus(s.ctx, namespace, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if len(namespace.Status.Conditions) != 1 {
		return fmt.Errorf("status is %+v", namespace.Status)
	}
	namespace.Spec.Finalizers = nil
	namespace, err = namespaces.Finalize(s.ctx, namespace, metav1.UpdateOptions{})
	if err == nil && len(namespace.Spec.Finalizers) != 0 {
		err = fmt.Errorf("finalizers are %v", namespace.Spec.Finalizers)
	}
	return err
}

// listPatches shows what is special to each way of patching: by key, as a
// whole, by position, by owner.
func (s *subresources) listPatches() error {
	if _, err := s.pod("lists"); err != nil {
		return err
	}
	for _, p := range []struct {
		how    types.PatchType
		body   string
		images string // of the containers a and b, or part of the refusal
	}{
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"b","image":"b:2"}]}}`, "a:1 b:2"},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/containers/0/name","value":"a"},{"op":"replace","path":"/spec/containers/0/image","value":"a:2"}]`, "a:2 b:2"},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/containers/0/name","value":"z"},{"op":"replace","path":"/spec/containers/0/image","value":"a:3"}]`, "error: rejected our request"},
		{types.MergePatchType, `{"spec":{"containers":[{"name":"a","image":"a:3"}]}}`, "error: may not add or remove containers"},
		{types.MergePatchType, `{"spec":{"containers":[{"name":"a","image":"a:3"},{"name":"b","image":"b:3"}]}}`, "a:3 b:3"},
		{types.ApplyPatchType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lists"},"spec":{"containers":[{"name":"a","image":"a:4"}]}}`, "a:4 b:3"},
	} {
		pod, err := s.pods.Patch(s.ctx, "lists", p.how, []byte(p.body), patchOptions(p.how))
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		} else {
			got = pod.Spec.Containers[0].Image + " " + pod.Spec.Containers[1].Image
		}
		if reason, refused := strings.CutPrefix(p.images, "error: "); refused && !strings.Contains(got, reason) || !refused && got != p.images {
			return fmt.Errorf("%s %s: %s, want %s", p.how, p.body, got, p.images)
		}
	}
	other := metav1.PatchOptions{FieldManager: "other"}
	_, err := s.pods.Patch(s.ctx, "lists", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lists"},"spec":{"containers":[{"name":"a","image":"a:5"}]}}`), other)
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("took another one's field: %w", err)
	}
	return nil
}

// TestConnect: what needs a kubelet says so where there is none, and reaches it
// where there is one.
func TestConnect(t *testing.T) {
	c := newCluster(t, 1, nil)
	s := &subresources{ctx: t.Context(), client: kubernetes.NewForConfigOrDie(c.clientConfig(0)), namespace: "default"}
	s.pods = s.client.CoreV1().Pods("default")
	if _, err := s.pod("alone"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"pods/alone/exec?command=id": 400, "pods/alone/attach": 400, "pods/alone/portforward": 400, "pods/alone/proxy/x": 400, "pods/none/exec": 404,
	} {
		a := c.http(0).do(http.MethodPost, "/api/v1/namespaces/default/"+path, nil)
		if a.code != want {
			t.Errorf("%s: answer %d, want %d: %s", path, a.code, want, a.body)
		}
		a.status(t)
	}
	if a := c.http(0).get("/api/v1/nodes/none/proxy/healthz"); a.code != http.StatusNotFound {
		t.Errorf("proxy to no node: %d: %s", a.code, a.body)
	}
}
