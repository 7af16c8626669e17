package registry

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
)

// admissionPlugin is a plugin of kube-apiserver's.
type admissionPlugin struct {
	name     string
	register func(*admission.Plugins)
}

// admissionPlugins are those of kube-apiserver's default set that concern kinds
// in the table, in upstream's order.
func admissionPlugins() []admissionPlugin {
	return []admissionPlugin{
		{lifecycle.PluginName, lifecycle.Register},
		{nodetaint.PluginName, nodetaint.Register},
		{podsecurity.PluginName, podsecurity.Register},
		{priority.PluginName, priority.Register},
		{defaulttolerationseconds.PluginName, defaulttolerationseconds.Register},
		{runtimeclass.PluginName, runtimeclass.Register},
		{podtopologylabels.PluginName, podtopologylabels.Register},
		{podresize.PluginName, podresize.Register},
	}
}

// NewAdmission makes the chain of admission plugins. They see the API through
// the client and the informers, and pods and nodes where they are stored.
func NewAdmission(client kubernetes.Interface, informers informers.SharedInformerFactory, stored Stored) (Admission, error) {
	factory, err := newPluginInformers(informers, stored)
	if err != nil {
		return nil, err
	}
	known := admission.NewPlugins()
	var names []string
	for _, plugin := range admissionPlugins() {
		plugin.register(known)
		names = append(names, plugin.name)
	}
	init := initializer.New(client, nil, factory, nil, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), nil, nil)
	plugins, err := known.NewFromPlugins(names, defaultConfig{}, init, admission.Decorators{})
	if err != nil {
		return nil, err
	}
	return newPatient(plugins.(Admission), factory.Core().V1().Namespaces().Informer().HasSynced), nil
}

// defaultConfig leaves every plugin at its defaults.
type defaultConfig struct{}

// ConfigFor implements admission.ConfigProvider.
func (defaultConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }
