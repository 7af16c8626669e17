package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/node"
	nodeinformers "k8s.io/client-go/informers/node/v1"
	"k8s.io/client-go/informers/scheduling"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
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
//   - Pods and nodes are in this process already. An informer would hold all of
//     them a second time; a lister reads them where they are.
type pluginInformers struct {
	informers.SharedInformerFactory
	stored     Stored
	priorities cache.Indexer
}

func newPluginInformers(factory informers.SharedInformerFactory, stored Stored) (pluginInformers, error) {
	p := pluginInformers{factory, stored, newIndexer()}
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

func (v coreVersion) Pods() coreinformers.PodInformer { return podInformer{pods: v.p.stored.Pods} }

func (v coreVersion) Nodes() coreinformers.NodeInformer { return nodeInformer{nodes: v.p.stored.Nodes} }

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
