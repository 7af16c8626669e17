package registry

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	coreconversions "k8s.io/kubernetes/pkg/apis/core/v1"
)

// Stored is what the admission plugins read of what this node stores, at any
// version that it has.
type Stored struct {
	Nodes rest.Getter
	Pods  rest.Lister
}

// StoredIn finds it among what is served.
func StoredIn(groups []Group) (s Stored, err error) {
	for _, group := range groups {
		if group.Version != corev1.SchemeGroupVersion {
			continue
		}
		s.Nodes, _ = group.Storage["nodes"].(rest.Getter)
		s.Pods, _ = group.Storage["pods"].(rest.Lister)
	}
	if s.Nodes == nil || s.Pods == nil {
		err = errors.New("admission needs nodes and pods, which are not in the table")
	}
	return s, err
}

type podInformer struct {
	synced
	pods rest.Lister
}

func (i podInformer) Lister() corelisters.PodLister { return podLister{pods: i.pods} }

// podLister lists the pods of a namespace when a plugin wants them.
type podLister struct {
	corelisters.PodLister
	pods rest.Lister
}

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{pods: l.pods, namespace: namespace}
}

type podNamespaceLister struct {
	corelisters.PodNamespaceLister
	pods      rest.Lister
	namespace string
}

func (l podNamespaceLister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	ctx := request.WithNamespace(context.Background(), l.namespace)
	list, err := l.pods.List(ctx, &internalversion.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	stored := list.(*core.PodList).Items
	pods := make([]*corev1.Pod, len(stored))
	for i := range stored {
		pods[i] = new(corev1.Pod)
		if err := coreconversions.Convert_core_Pod_To_v1_Pod(&stored[i], pods[i], nil); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

type nodeInformer struct {
	synced
	nodes rest.Getter
}

func (i nodeInformer) Lister() corelisters.NodeLister { return nodeLister{nodes: i.nodes} }

type nodeLister struct {
	corelisters.NodeLister
	nodes rest.Getter
}

func (l nodeLister) Get(name string) (*corev1.Node, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 { // upstream's registry would call it a mistake
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	stored, err := l.nodes.Get(context.Background(), name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	node := new(corev1.Node)
	return node, coreconversions.Convert_core_Node_To_v1_Node(stored.(*core.Node), node, nil)
}
