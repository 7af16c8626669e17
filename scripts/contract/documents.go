package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The peer has many more kinds than Kontiki. Documents that list kinds are
// compared as far as they are about those that both have.
var (
	sharedGroups    = []string{"", "coordination.k8s.io", "events.k8s.io"}
	sharedResources = []string{"bindings", "endpoints", "events", "leases", "namespaces", "nodes", "pods", "services"}
	sharedPaths     = regexp.MustCompile(`^/?(api/?|apis/?|(api/v1|apis/(coordination|events)\.k8s\.io(/v1)?)(/?|/(watch/)?(namespaces/\{namespace\}/)?(` +
		strings.Join(sharedResources, "|") + `)(/.*)?)|openapi/.*|healthz/?|livez/?|readyz/?|version/?)$`)
	// finalizers of namespaces and the like look as if they were resources in one.
	otherPaths = regexp.MustCompile(`^/api/v1/(watch/)?namespaces/\{namespace\}/(configmaps|limitranges|persistentvolumeclaims|podtemplates|replicationcontrollers|resourcequotas|secrets|serviceaccounts)(/|$)`)
)

// shared leaves of a document what is about kinds that both servers have.
func shared(document map[string]any) {
	switch document["kind"] {
	case "APIGroupList":
		keep(document, "groups", func(group map[string]any) bool { return contains(sharedGroups, group["name"]) })
	case "APIResourceList":
		keep(document, "resources", sharedResource)
	case "APIGroupDiscoveryList":
		keep(document, "items", func(group map[string]any) bool {
			keep(group, "versions", func(version map[string]any) bool { keep(version, "resources", sharedResource); return true })
			metadata, _ := group["metadata"].(map[string]any)
			return metadata["name"] == nil || contains(sharedGroups, metadata["name"])
		})
	}
	if release, ok := document["gitVersion"].(string); ok { // of /version
		document["gitVersion"], _, _ = strings.Cut(release, "+")
		for _, key := range []string{"buildDate", "gitCommit", "gitTreeState", "goVersion", "platform"} {
			document[key] = "<of the build>"
		}
	}
	if list, ok := document["paths"].([]any); ok { // of /
		document["paths"] = slices.DeleteFunc(list, func(path any) bool { return !sharedPaths.MatchString(fmt.Sprint(path)) })
	}
	paths, ok := document["paths"].(map[string]any)
	if !ok {
		return
	}
	for path := range paths {
		if !sharedPaths.MatchString(path) || otherPaths.MatchString(path) {
			delete(paths, path)
		}
	}
	for _, at := range [][]string{{"parameters"}, {"definitions"}, {"components", "schemas"}} {
		if definitions := inside(document, at...); definitions != nil {
			reached := map[string]bool{}
			reach(paths, definitions, reached)
			for name := range definitions {
				if !reached[name] {
					delete(definitions, name)
				}
			}
		}
	}
}

func sharedResource(resource map[string]any) bool {
	name, _ := resource["name"].(string)
	if name == "" { // aggregated discovery
		name, _ = resource["resource"].(string)
	}
	name, _, _ = strings.Cut(name, "/")
	return slices.Contains(sharedResources, name)
}

// reach notes the definitions that value refers to, directly or not.
func reach(value any, definitions map[string]any, reached map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		const kinds = "x-kubernetes-group-version-kind"
		keep(value, kinds, func(kind map[string]any) bool { return contains(sharedGroups, kind["group"]) })
		for key, inner := range value {
			if ref, ok := inner.(string); ok && key == "$ref" {
				name := ref[strings.LastIndex(ref, "/")+1:]
				if !reached[name] {
					reached[name] = true
					reach(definitions[name], definitions, reached)
				}
			}
			reach(inner, definitions, reached)
		}
	case []any:
		for _, inner := range value {
			reach(inner, definitions, reached)
		}
	}
}

func keep(object map[string]any, key string, wanted func(map[string]any) bool) {
	if members, ok := object[key].([]any); ok {
		object[key] = slices.DeleteFunc(members, func(member any) bool {
			object, ok := member.(map[string]any)
			return ok && !wanted(object)
		})
	}
}

func contains(names []string, name any) bool {
	text, _ := name.(string)
	return slices.Contains(names, text)
}

func inside(object map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		object, _ = object[key].(map[string]any)
	}
	return object
}
