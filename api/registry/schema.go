package registry

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	enabled "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generated "k8s.io/kubernetes/pkg/generated/openapi"
)

// Definitions are the OpenAPI schemas of the types, as kube-apiserver serves
// them with its default feature gates.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return enabled.GetOpenAPIDefinitionsWithoutDisabledFeatures(generated.GetOpenAPIDefinitions)(ref)
}

// DefinitionNamer gives the schemas their public names.
func DefinitionNamer() *openapi.DefinitionNamer {
	return openapi.NewDefinitionNamer(legacyscheme.Scheme)
}

// TypeConverter knows the merge rules of every field, for managedFields and
// server-side apply. The schema it parses on first use is client-go's.
func TypeConverter() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(legacyscheme.Scheme)
}
