package routes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kontiki/api/fields"
	"kontiki/api/registry"
)

// target is one resource or subresource that gets routes.
type target struct {
	Config
	storage     rest.Storage
	scope       *handlers.RequestScope
	namespaced  bool
	group       string
	resource    string
	subresource string
	types       fields.Types
	owners      *fields.Owners
	shared      bool     // answers are sent as they are stored, see answers.go
	warnings    []string // sent with every response
}

// newTarget finds out what the handlers need to know of group's storage name.
func newTarget(group registry.Group, name string, cfg Config, equivalents runtime.EquivalentResourceRegistry) (*target, error) {
	resource, subresource, _ := strings.Cut(name, "/")
	storage := group.Storage[name]
	scoper, ok := group.Storage[resource].(rest.Scoper)
	if !ok {
		return nil, fmt.Errorf("storage of %s does not say whether it is namespaced", resource)
	}
	kind, err := endpoints.GetResourceKind(group.Version, storage, cfg.Scheme)
	if err != nil {
		return nil, err
	}
	t := &target{
		Config: cfg, storage: storage, namespaced: scoper.NamespaceScoped(),
		group: group.Version.Group, resource: resource, subresource: subresource, shared: undecorated(storage),
	}
	if t.warnings, err = deprecations(cfg.Scheme, kind); err != nil {
		return nil, err
	}
	equivalents.RegisterKindFor(group.Version.WithResource(resource), subresource, kind)
	t.scope, err = t.newScope(group.Version, kind, equivalents)
	return t, err
}

func (t *target) newScope(served schema.GroupVersion, kind schema.GroupVersionKind, equivalents runtime.EquivalentResourceRegistry) (*handlers.RequestScope, error) {
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	tables, _ := t.storage.(rest.TableConvertor)
	accepts, _ := t.storage.(rest.GroupVersionAcceptor)
	t.types = fields.NewTypes(t.TypeConverter, t.group, kind, t.Scheme)
	manager, err := t.newFieldManager(kind, internal, t.types)
	if err != nil {
		return nil, err
	}
	t.owners = fields.NewOwners(kind, t.subresource, t.Scheme, t.types, manager)
	return &handlers.RequestScope{
		Namer: handlers.ContextBasedNaming{
			Namer:         runtime.Namer(meta.NewAccessor()),
			ClusterScoped: !t.namespaced,
		},
		Serializer:                  t.Serializer,
		ParameterCodec:              t.ParameterCodec,
		Creater:                     t.Scheme,
		Convertor:                   t.Scheme,
		Defaulter:                   t.Scheme,
		Typer:                       t.Scheme,
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(t.Scheme),
		Authorizer:                  t.Authorizer,
		EquivalentResourceMapper:    equivalents,
		TableConvertor:              tables,
		FieldManager:                manager,
		Resource:                    served.WithResource(t.resource),
		Subresource:                 t.subresource,
		Kind:                        kind,
		AcceptsGroupVersionDelegate: accepts,
		HubGroupVersion:             internal,
		MetaGroupVersion:            metav1.SchemeGroupVersion,
		MaxRequestBodyBytes:         t.MaxBodyBytes,
	}, nil
}

// newFieldManager tracks who owns which field. A strategy that resets fields
// says so, or its resets would look like the client's wish.
func (t *target) newFieldManager(kind schema.GroupVersionKind, hub schema.GroupVersion, types managedfields.TypeConverter) (*managedfields.FieldManager, error) {
	var resets map[fieldpath.APIVersion]fieldpath.Filter
	if strategy, ok := t.storage.(rest.ResetFieldsStrategy); ok {
		resets = fieldpath.NewExcludeFilterSetMap(strategy.GetResetFields())
	}
	if strategy, ok := t.storage.(rest.ResetFieldsFilterStrategy); ok {
		resets = strategy.GetResetFieldsFilter()
	}
	return managedfields.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(t.Scheme),
		t.Scheme, t.Scheme, kind, hub, t.subresource, resets)
}

// deprecations returns the warnings that responses about a kind carry, as of
// the Kubernetes release that is served.
func deprecations(scheme *runtime.Scheme, kind schema.GroupVersionKind) ([]string, error) {
	obj, err := scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	release := version.MustParse(registry.Release)
	if !deprecation.IsDeprecated(obj, int(release.Major()), int(release.Minor())) {
		return nil, nil
	}
	return []string{deprecation.WarningMessage(obj)}, nil
}
