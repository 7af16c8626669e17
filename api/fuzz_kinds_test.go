package api

import "strings"

// kind is one resource or subresource that is written to, and a body that fits.
type kind struct {
	prefix, namespace, resource, name, subresource string
	seed                                           string
}

const core, named = "/api/v1", "/apis/"

const podBody = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there","labels":{"app":"a"},"annotations":{"k":"v"},"finalizers":["a.b/c"]},` +
	`"spec":{"containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"b"}],` +
	`"resources":{"limits":{"cpu":"1","memory":"64Mi"},"requests":{"cpu":"100m"}},"readinessProbe":{"httpGet":{"path":"/","port":80}}}],` +
	`"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}],"tolerations":[{"key":"a","operator":"Exists"}],` +
	`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}]}}}}}`

// fuzzKinds has every resource that can be written, and each subresource.
var fuzzKinds = []kind{
	{named + "coordination.k8s.io/v1", "default", "leases", "there", "", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"there","labels":{"app":"a"}},"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"acquireTime":"2024-05-01T10:00:00.000000Z","renewTime":"2024-05-01T10:00:05.123456Z"}}`},
	{core, "default", "pods", "there", "", podBody},
	{core, "", "namespaces", "there", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"there","labels":{"app":"a"}}}`},
	{core, "", "nodes", "there", "", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"there"},"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"],"taints":[{"key":"a","effect":"NoSchedule"}]},"status":{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True","reason":"R"}]}}`},
	{core, "default", "endpoints", "there", "", `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"there"},"subsets":[{"addresses":[{"ip":"10.1.2.3","targetRef":{"kind":"Pod","name":"there"}}],"ports":[{"name":"a","port":80}]}]}`},
	{core, "default", "events", "there", "", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"there","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default","name":"there"},"reason":"R","message":"m","type":"Normal","count":1,"firstTimestamp":"2024-05-01T10:00:00Z","lastTimestamp":"2024-05-01T10:00:00Z"}`},
	{named + "events.k8s.io/v1", "default", "events", "new", "", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"new","namespace":"default"},"eventTime":"2024-05-01T10:00:00.000000Z","reportingController":"a.b/c","reportingInstance":"i","action":"A","reason":"R","regarding":{"kind":"Pod","namespace":"default","name":"there"},"type":"Normal","note":"n","series":{"count":2,"lastObservedTime":"2024-05-01T10:00:00.000000Z"}}`},
	{core, "default", "bindings", "", "", ``},
	{core, "", "namespaces", "there", "status", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"there"},"status":{"phase":"Active"}}`},
	{core, "", "namespaces", "there", "finalize", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"there"},"spec":{"finalizers":["kubernetes"]}}`},
	{core, "", "nodes", "there", "status", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"there"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}`},
	{core, "default", "pods", "there", "status", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}],"containerStatuses":[{"name":"a","ready":true,"restartCount":0,"image":"a","imageID":"a","state":{"running":{"startedAt":"2024-05-01T10:00:00Z"}}}]}}`},
	{core, "default", "pods", "there", "ephemeralcontainers", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"a","image":"a:1"}],"ephemeralContainers":[{"name":"e","image":"e","targetContainerName":"a"}]}}`},
	{core, "default", "pods", "there", "resize", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"a","image":"a:1","resources":{"limits":{"cpu":"2","memory":"64Mi"},"requests":{"cpu":"200m"}}}]}}`},
	{core, "default", "pods", "there", "binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"there"},"target":{"kind":"Node","name":"there"}}`},
	{core, "default", "pods", "there", "eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"there"},"deleteOptions":{"gracePeriodSeconds":0,"propagationPolicy":"Background"}}`},
}

// bindingBody is what the deprecated resource bindings takes; it stores none.
const bindingBody = `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"there"},"target":{"kind":"Node","name":"there"}}`

// body is the seed that a request starts from.
func (k kind) body() string {
	if k.resource == "bindings" {
		return bindingBody
	}
	return k.seed
}

func (k kind) collection() string {
	if k.namespace == "" {
		return k.prefix + "/" + k.resource
	}
	return k.prefix + "/namespaces/" + k.namespace + "/" + k.resource
}

func (k kind) item() string {
	return strings.TrimRight(k.collection()+"/"+k.name+"/"+k.subresource, "/")
}
