package routes

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
)

// patchTypes are the media types of a PATCH, as upstream accepts them.
var patchTypes = []string{
	string(types.JSONPatchType),
	string(types.MergePatchType),
	string(types.StrategicMergePatchType),
	string(types.ApplyYAMLPatchType),
}

// routes lists what a target is served under.
func (t *target) routes() []route {
	if t.subresource == "" {
		return slices.Concat(t.collectionRoutes(), t.itemRoutes(t.item()), t.connectRoutes())
	}
	return append(t.itemRoutes(t.item()+"/"+t.subresource), t.connectRoutes()...)
}

// stream, object and patch make routes by what they answer with.
func (t *target) stream(path string, handler func() http.HandlerFunc) route {
	return route{method: http.MethodGet, path: path, handler: handler, produces: t.streams()}
}

func (t *target) object(method, path string, handler func() http.HandlerFunc) route {
	return route{method: method, path: path, handler: handler, produces: t.producedBy(method)}
}

func (t *target) patch(path string, handler func() http.HandlerFunc) route {
	r := t.object(http.MethodPatch, path, handler)
	r.consumes = patchTypes
	return r
}

// collection is the path of the resource in its scope. As with upstream, the
// namespace may be empty, which means all of them.
func (t *target) collection() string {
	if t.namespaced {
		return "namespaces/{namespace:[^/]*}/" + t.resource
	}
	return t.resource
}

func (t *target) item() string { return t.collection() + "/{name}" }

// collectionRoutes are list, watch, create and deletecollection, and for a
// namespaced resource list and watch over all namespaces. The paths that begin
// with watch/ are deprecated since 1.11 and still served.
func (t *target) collectionRoutes() []route {
	var all []route
	if lister, ok := t.storage.(rest.Lister); ok {
		watcher, _ := t.storage.(rest.Watcher)
		list := t.serveList(lister, watcher)
		watch := func() http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { t.serveLists(lister, watcher, true, w, r) }
		}
		all = append(all,
			t.stream(t.collection(), list),
			t.stream("watch/"+t.collection(), watch),
			t.stream("watch/"+t.item(), watch))
		if t.namespaced {
			all = append(all,
				t.stream(t.resource, list),
				t.stream("watch/"+t.resource, watch))
		}
	}
	if creater, ok := t.storage.(rest.Creater); ok {
		all = append(all, t.object(http.MethodPost, t.collection(), t.serveCreate(creater)))
	}
	if deleter, ok := t.storage.(rest.CollectionDeleter); ok {
		all = append(all, t.object(http.MethodDelete, t.collection(), func() http.HandlerFunc { return handlers.DeleteCollection(deleter, true, t.scope, t.Admission) }))
	}
	return all
}

// itemRoutes are the verbs on one object, or on one of its subresources.
func (t *target) itemRoutes(path string) []route {
	var all []route
	if getter, ok := t.storage.(rest.GetterWithOptions); ok {
		all = append(all, t.object(http.MethodGet, path, func() http.HandlerFunc { return handlers.GetResourceWithOptions(getter, t.scope, t.subresource != "") }))
	} else if getter, ok := t.storage.(rest.Getter); ok {
		all = append(all, t.object(http.MethodGet, path, t.serveGet(getter)))
	}
	if updater, ok := t.storage.(rest.Updater); ok {
		all = append(all, t.object(http.MethodPut, path, t.serveUpdate(updater)))
	}
	if patcher, ok := t.storage.(rest.Patcher); ok {
		all = append(all, t.patch(path, t.servePatch(patcher)))
	}
	if deleter, ok := t.storage.(rest.GracefulDeleter); ok {
		all = append(all, t.object(http.MethodDelete, path, t.serveDelete(deleter)))
	}
	if t.subresource == "" {
		return all
	}
	if creater, ok := t.storage.(rest.NamedCreater); ok {
		all = append(all, t.object(http.MethodPost, path, t.serveCreateNamed(creater)))
	} else if creater, ok := t.storage.(rest.Creater); ok {
		all = append(all, t.object(http.MethodPost, path, t.serveCreate(creater)))
	}
	return all
}

// connectRoutes are for subresources that hand the connection over, to a
// kubelet for instance.
func (t *target) connectRoutes() []route {
	connecter, ok := t.storage.(rest.Connecter)
	if !ok {
		return nil
	}
	path := strings.TrimSuffix(t.item()+"/"+t.subresource, "/")
	name := strings.TrimSuffix(t.resource+"/"+t.subresource, "/")
	handler := func() http.HandlerFunc {
		return handlers.ConnectResource(connecter, t.scope, t.Admission, name, t.subresource != "")
	}
	_, below, _ := connecter.NewConnectOptions()
	var all []route
	for _, method := range connecter.ConnectMethods() {
		all = append(all, route{method: method, path: path, handler: handler})
		if below {
			all = append(all, route{method: method, path: path + "/{path:.*}", handler: handler})
		}
	}
	return all
}
