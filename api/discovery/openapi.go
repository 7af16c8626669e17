package discovery

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	upstream "k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"kontiki/api/registry"
)

// ServeOpenAPI answers /openapi/v2 and everything below /openapi/v3.
func (d *Documents) ServeOpenAPI(w http.ResponseWriter, r *http.Request) {
	handler, err := d.openapi()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if group, ok := strings.CutPrefix(r.URL.Path, "/openapi/v3/"); ok && !d.described[group] {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	handler.ServeHTTP(w, r)
}

// describe writes the OpenAPI documents of the routes in the container.
func (d *Documents) describe() (http.Handler, error) {
	container, err := d.container()
	if err != nil {
		return nil, err
	}
	namer := registry.DefinitionNamer()
	v2 := genericapiserver.DefaultOpenAPIConfig(registry.Definitions, namer)
	v3 := genericapiserver.DefaultOpenAPIV3Config(registry.Definitions, namer)
	release := version.MustParse(registry.Release)
	v2.Info.Title, v3.Info.Title = "Kubernetes", "Kubernetes"
	v2.Info.Version = fmt.Sprintf("%d.%d", release.Major(), release.Minor())
	v3.Info.Version = v2.Info.Version
	secure(v2, v3)
	handler := mux.NewPathRecorderMux("openapi")
	docs := upstream.OpenAPI{Config: v2, V3Config: v3}
	docs.InstallV2(container, handler)
	docs.InstallV3(container, handler)
	for _, service := range container.RegisteredWebServices() {
		d.described[strings.TrimPrefix(service.RootPath(), "/")] = true
	}
	return handler, nil
}

// secure says how to authenticate, and that a request may be refused for that.
func secure(v2 *common.Config, v3 *common.OpenAPIV3Config) {
	const scheme, text, refused = "BearerToken", "Bearer Token authentication", "Unauthorized"
	token := &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{
		Type: "apiKey", Name: "authorization", In: "header", Description: text,
	}}
	required := []map[string][]string{{scheme: {}}}
	v2.SecurityDefinitions = &spec.SecurityDefinitions{scheme: token}
	v2.DefaultSecurity = required
	v2.CommonResponses = map[int]spec.Response{
		http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: refused}},
	}
	v3.SecuritySchemes = spec3.SecuritySchemes{scheme: &spec3.SecurityScheme{SecuritySchemeProps: spec3.SecuritySchemeProps{
		Type: token.Type, Name: token.Name, In: token.In, Description: text,
	}}}
	v3.DefaultSecurity = required
	v3.CommonResponses = map[int]*spec3.Response{
		http.StatusUnauthorized: {ResponseProps: spec3.ResponseProps{Description: refused}},
	}
}
