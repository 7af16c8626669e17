package load

import (
	"fmt"
	"strings"

	"kontiki/scripts/chaos/history"
)

// valueAnnotation holds what a write wrote, by which any read can be tied to it.
const valueAnnotation = "chaos/value"

// resource is a kind of object that the load works on: body makes one, from what fits into metadata.
type resource struct {
	name   string
	prefix string // of the path, before the namespace
	body   string // with %s for the metadata
	// lasting objects are not deleted. Deleting a pod takes two writes, and an update that comes between them
	// completes the deletion instead, as with kube-apiserver: such a call is not one write.
	lasting bool
	// patched: an update is a patch with a version, because most of the object must not be changed.
	patched bool
}

var resources = [...]*resource{
	{"pods", "/api/v1", `{"apiVersion":"v1","kind":"Pod","metadata":%s,"spec":{"containers":[{"name":"c","image":"i"}]}}`, true, true},
	{"endpoints", "/api/v1", `{"apiVersion":"v1","kind":"Endpoints","metadata":%s,"subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]}`, false, false},
	{"leases", "/apis/coordination.k8s.io/v1", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":%s,"spec":{"holderIdentity":"h","leaseDurationSeconds":15}}`, false, false},
}

const leases = 2 // of resources

// path is that of the collection, or of an object in it.
func (r *resource) path(namespace, name string) string {
	path := fmt.Sprintf("%s/namespaces/%s/%s", r.prefix, namespace, r.name)
	if name != "" {
		path += "/" + name
	}
	return path
}

func (r *resource) key(name string) string { return r.name + "/" + name }

// metadata is that of a write; the version and the uid are empty where it has no precondition.
func metadata(name, value, version, uid string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"name":%q,"annotations":{%q:%q}`, name, valueAnnotation, value)
	if version != "" {
		fmt.Fprintf(&b, `,"resourceVersion":%q`, version)
	}
	if uid != "" {
		fmt.Fprintf(&b, `,"uid":%q`, uid)
	}
	b.WriteString("}")
	return b.String()
}

// itemsOf are the objects of a list, as the history has them.
func (r *resource) itemsOf(doc document) (items []history.Item) {
	for i := range doc.Items {
		item := &doc.Items[i]
		items = append(items, history.Item{Key: r.key(item.Metadata.Name), RV: item.version(), Value: item.value()})
	}
	return items
}
