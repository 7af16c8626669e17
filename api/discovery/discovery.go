package discovery

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	upstream "k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	upstreamroutes "k8s.io/apiserver/pkg/server/routes"

	"kontiki/api/registry"
	"kontiki/api/routes"
)

// Documents serves the discovery and OpenAPI documents.
type Documents struct {
	groups    []registry.Group
	cfg       routes.Config
	address   string
	container func() (*restful.Container, error)
	plain     map[string]http.Handler // by path; filled with the container
	version   version.Info
	openapi   func() (http.Handler, error)
	described map[string]bool // OpenAPI v3 documents, filled with openapi
}

// New makes the documents of groups. Address, host:port, is where clients are
// told that this server is.
func New(groups []registry.Group, cfg routes.Config, address string) *Documents {
	d := &Documents{
		groups: groups, cfg: cfg, address: address, version: registry.Version(""),
		plain: map[string]http.Handler{}, described: map[string]bool{},
	}
	d.container = sync.OnceValues(d.install)
	d.openapi = sync.OnceValues(d.describe)
	return d
}

// ServeHTTP answers the paths of discovery, /api and /apis with one or two more
// segments.
func (d *Documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	container, err := d.container()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if plain, ok := d.plain[strings.TrimRight(r.URL.Path, "/")]; ok {
		plain.ServeHTTP(w, r)
		return
	}
	container.ServeHTTP(w, r)
}

// Paths lists the paths that discovery answers.
func (d *Documents) Paths() []string {
	paths := []string{"/api", "/apis"}
	for _, group := range d.groups {
		if group.Version.Group != "" {
			paths = append(paths, "/apis/"+group.Version.Group)
		}
		paths = append(paths, routes.Prefix(group.Version))
	}
	return paths
}

// install puts every group into a container of upstream's.
func (d *Documents) install() (*restful.Container, error) {
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	container.ServiceErrorHandler(d.refuse)
	addresses := upstream.DefaultAddresses{DefaultAddress: d.address}
	legacy := aggregated.NewResourceManager("api")
	named := aggregated.NewResourceManager("apis")
	var list metav1.APIGroupList
	for _, group := range d.groups {
		resources, err := d.installGroup(container, group)
		if err != nil {
			return nil, fmt.Errorf("discovery of %s: %w", group.Version, err)
		}
		manager := named
		if group.Version.Group == "" {
			manager = legacy
		} else {
			info := groupInfo(group.Version)
			list.Groups = append(list.Groups, info)
			d.plain["/apis/"+info.Name] = document{d.cfg.Serializer, &info}
			container.Add(upstream.NewAPIGroupHandler(d.cfg.Serializer, info).WebService())
		}
		manager.AddGroupVersion(group.Version.Group, apidiscoveryv2.APIVersionDiscovery{
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			Version:   group.Version.Version,
			Resources: resources,
		})
	}
	core := upstream.NewLegacyRootAPIHandler(addresses, d.cfg.Serializer, "/api")
	container.Add(aggregated.WrapAggregatedDiscoveryToHandler(core, legacy, legacy).GenerateWebService("/api", metav1.APIVersions{}))
	apis := aggregated.WrapAggregatedDiscoveryToHandler(document{d.cfg.Serializer, &list}, named, named)
	container.Add(apis.GenerateWebService("/apis", metav1.APIGroupList{}))
	upstreamroutes.Version{Version: &d.version}.Install(container)
	d.plain["/apis"] = apis
	return container, nil
}

// refuse answers with a Status where go-restful would with text.
func (d *Documents) refuse(failure restful.ServiceError, req *restful.Request, resp *restful.Response) {
	err := apierrors.NewGenericServerResponse(failure.Code, "", schema.GroupResource{}, "", failure.Message, 0, false)
	responsewriters.ErrorNegotiated(err, d.cfg.Serializer, schema.GroupVersion{}, resp, req.Request)
}

// document answers with one object, whatever the method: so kube-apiserver's
// aggregator does for the list of groups and for each group.
type document struct {
	serializer runtime.NegotiatedSerializer
	object     runtime.Object
}

// ServeHTTP implements http.Handler.
func (d document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	responsewriters.WriteObjectNegotiated(d.serializer, negotiation.DefaultEndpointRestrictions,
		schema.GroupVersion{}, w, r, http.StatusOK, d.object, false)
}

func (d *Documents) installGroup(container *restful.Container, group registry.Group) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	apiRoot := "/apis"
	if group.Version.Group == "" {
		apiRoot = "/api"
	}
	version := &endpoints.APIGroupVersion{
		Root:                        apiRoot,
		GroupVersion:                group.Version,
		Storage:                     group.Storage,
		AllServedVersionsByResource: servedVersions(group),
		Serializer:                  d.cfg.Serializer,
		ParameterCodec:              d.cfg.ParameterCodec,
		Typer:                       d.cfg.Scheme,
		Creater:                     d.cfg.Scheme,
		Convertor:                   d.cfg.Scheme,
		ConvertabilityChecker:       d.cfg.Scheme,
		Defaulter:                   d.cfg.Scheme,
		Namer:                       runtime.Namer(meta.NewAccessor()),
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(d.cfg.Scheme),
		TypeConverter:               d.cfg.TypeConverter,
		EquivalentResourceRegistry:  runtime.NewEquivalentResourceRegistry(),
		Authorizer:                  d.cfg.Authorizer,
		Admit:                       d.cfg.Admission,
		MinRequestTimeout:           d.cfg.MinWatchTimeout,
		MaxRequestBodyBytes:         d.cfg.MaxBodyBytes,
	}
	resources, _, err := version.InstallREST(container)
	return resources, err
}

func servedVersions(group registry.Group) map[string][]string {
	served := map[string][]string{}
	for name := range group.Storage {
		served[name] = []string{group.Version.String()}
	}
	return served
}

func groupInfo(version schema.GroupVersion) metav1.APIGroup {
	served := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
	return metav1.APIGroup{
		Name:             version.Group,
		Versions:         []metav1.GroupVersionForDiscovery{served},
		PreferredVersion: served,
	}
}
