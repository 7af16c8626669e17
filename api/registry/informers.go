package registry

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/node"
	nodeinformers "k8s.io/client-go/informers/node/v1"
	"k8s.io/client-go/informers/scheduling"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	nodelisters "k8s.io/client-go/listers/node/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"
	schedulingdefaults "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// pluginInformers is the informer factory of the admission plugins. Namespaces,
// which they ask for on every write, come from a real informer. For the rest
// there is a cheaper way:
//
//   - Kinds without a row in the table are fixed: the two priority classes that
//     every Kubernetes has, and no runtime classes.
//   - Pods and nodes are in this process already, and seldom asked for. An
//     informer would hold all of them a second time; a lister reads them
//     through the client, at any version this node has.
type pluginInformers struct {
	informers.SharedInformerFactory
	client     kubernetes.Interface
	priorities cache.Indexer
}

func newPluginInformers(factory informers.SharedInformerFactory, client kubernetes.Interface) (pluginInformers, error) {
	p := pluginInformers{factory, client, newIndexer()}
	preempt := corev1.PreemptLowerPriority // the API's default for a class
	for _, class := range schedulingdefaults.SystemPriorityClasses() {
		class.PreemptionPolicy = &preempt
		if err := p.priorities.Add(class); err != nil {
			return p, err
		}
	}
	return p, nil
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
}

// Core, Node and Scheduling lead the plugins to the listers below.
func (p pluginInformers) Core() core.Interface             { return coreGroup{p.SharedInformerFactory.Core(), p} }
func (p pluginInformers) Node() node.Interface             { return nodeGroup{p: p} }
func (p pluginInformers) Scheduling() scheduling.Interface { return schedulingGroup{p: p} }

type coreGroup struct {
	core.Interface
	p pluginInformers
}

func (g coreGroup) V1() coreinformers.Interface { return coreVersion{g.Interface.V1(), g.p} }

type coreVersion struct {
	coreinformers.Interface
	p pluginInformers
}

func (v coreVersion) Pods() coreinformers.PodInformer { return podInformer{client: v.p.client} }

func (v coreVersion) Nodes() coreinformers.NodeInformer { return nodeInformer{client: v.p.client} }

type nodeGroup struct {
	node.Interface
	p pluginInformers
}

func (g nodeGroup) V1() nodeinformers.Interface { return nodeVersion{} }

type nodeVersion struct{ nodeinformers.Interface }

func (nodeVersion) RuntimeClasses() nodeinformers.RuntimeClassInformer { return runtimeClassInformer{} }

type runtimeClassInformer struct{ synced }

func (runtimeClassInformer) Lister() nodelisters.RuntimeClassLister {
	return nodelisters.NewRuntimeClassLister(newIndexer())
}

type schedulingGroup struct {
	scheduling.Interface
	p pluginInformers
}

func (g schedulingGroup) V1() schedulinginformers.Interface { return schedulingVersion{p: g.p} }

type schedulingVersion struct {
	schedulinginformers.Interface
	p pluginInformers
}

func (v schedulingVersion) PriorityClasses() schedulinginformers.PriorityClassInformer {
	return priorityClassInformer{classes: v.p.priorities}
}

type priorityClassInformer struct {
	synced
	classes cache.Indexer
}

func (i priorityClassInformer) Lister() schedulinglisters.PriorityClassLister {
	return schedulinglisters.NewPriorityClassLister(i.classes)
}

// synced is the informer of what needs none: there is nothing to wait for.
type synced struct{ cache.SharedIndexInformer }

func (s synced) Informer() cache.SharedIndexInformer { return s }
func (synced) HasSynced() bool                       { return true }

type podInformer struct {
	synced
	client kubernetes.Interface
}

func (i podInformer) Lister() corelisters.PodLister { return podLister{client: i.client} }

// podLister lists the pods of a namespace when a plugin wants them.
type podLister struct {
	corelisters.PodLister
	client kubernetes.Interface
}

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{client: l.client, namespace: namespace}
}

type podNamespaceLister struct {
	corelisters.PodNamespaceLister
	client    kubernetes.Interface
	namespace string
}

func (l podNamespaceLister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	options := metav1.ListOptions{LabelSelector: selector.String(), ResourceVersion: "0"}
	list, err := l.client.CoreV1().Pods(l.namespace).List(context.Background(), options)
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

type nodeInformer struct {
	synced
	client kubernetes.Interface
}

func (i nodeInformer) Lister() corelisters.NodeLister { return nodeLister{client: i.client} }

type nodeLister struct {
	corelisters.NodeLister
	client kubernetes.Interface
}

func (l nodeLister) Get(name string) (*corev1.Node, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 { // the client would call it a mistake
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	return l.client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{ResourceVersion: "0"})
}
