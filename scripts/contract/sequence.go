package main

import (
	"fmt"
	"net/url"
	"strings"
)

// A sequence is requests whose order matters. Every server gets it in a
// namespace of its own, so sequences may run side by side.
type sequence struct {
	name  string
	steps []step
}

// A step is one request. Path, query and body may hold $NS, the namespace, and
// {{...}}, something that an earlier answer said: see memory.expand.
type step struct {
	method, path, query string
	header              [][2]string
	body                string
	user                string // whose credentials: see credentials
	proto               bool   // the body is JSON here and goes out as protobuf
	watch               bool   // the answer is a stream; read it while the next steps run
	close               bool   // not a request: collect the streams that are open
	untilEnd            bool   // the stream is expected to end by itself
	eventually          bool   // servers may take a moment to agree
	until               string // and to say this
}

// String is the request as a person would say it.
func (s step) String() string {
	if s.close {
		return "(what the open watches saw)"
	}
	return s.method + " " + s.target()
}

func (s step) target() string {
	if s.query == "" {
		return s.path
	}
	return s.path + "?" + s.query
}

// The verbs. Query is "a=b&c=d" as it goes over the wire, or nothing.
func do(method, path string, query ...string) step {
	s := step{method: method, path: path, query: strings.Join(query, "&")}
	s.eventually = s.anyVersion()
	return s
}

// anyVersion says whether an answer may be stale.
func (s step) anyVersion() bool {
	return s.method == "GET" && strings.Contains(s.query, "resourceVersion=0")
}

func get(path string, query ...string) step        { return do("GET", path, query...) }
func del(path string, query ...string) step        { return do("DELETE", path, query...) }
func post(path, body string, query ...string) step { return do("POST", path, query...).send(body) }
func put(path, body string, query ...string) step  { return do("PUT", path, query...).send(body) }

// patch sends a body as one of the patch types; kind is "json", "merge",
// "strategic", "apply" or a whole media type.
func patch(kind, path, body string, query ...string) step {
	if media, ok := patchTypes[kind]; ok {
		kind = media
	}
	return do("PATCH", path, query...).with("Content-Type", kind).send(body)
}

var patchTypes = map[string]string{
	"json":      "application/json-patch+json",
	"merge":     "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json",
	"apply":     "application/apply-patch+yaml",
}

// watching opens a stream; collect waits until it is quiet, and so does the end
// of the sequence.
func watching(path string, query ...string) step {
	s := do("GET", path, query...)
	s.watch, s.eventually = true, false
	return s
}

func collect() step { return step{close: true} }

func (s step) send(body string) step { s.body = body; return s }
func (s step) as(user string) step   { s.user = user; return s }
func (s step) later() step           { s.eventually = true; return s }
func (s step) saying(words string) step {
	s.eventually, s.until = true, words
	return s
}

func (s step) toTheEnd() step { s.untilEnd = true; return s }

func (s step) with(key, value string) step {
	s.header = append(s.header[:len(s.header):len(s.header)], [2]string{key, value})
	return s
}

// accepting asks for one encoding of the answer.
func (s step) accepting(media string) step { return s.with("Accept", media) }

// asProto sends the body as protobuf and asks for protobuf, as controllers do.
func (s step) asProto() step {
	s.proto = s.body != ""
	return s.accepting(protobufMedia)
}

const (
	protobufMedia  = "application/vnd.kubernetes.protobuf"
	protobufStream = "application/vnd.kubernetes.protobuf;stream=watch"
	table          = "application/json;as=Table;v=v1;g=meta.k8s.io"
	partial        = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partialList    = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// param is one query parameter, escaped.
func param(key, value string) string { return key + "=" + url.QueryEscape(value) }

// A kind is a resource that both servers have, with a body for each purpose.
type kind struct {
	name       string // of the resource
	prefix     string // of the group version's paths
	apiVersion string
	kind       string
	valid      string // the members of a valid object beside metadata, ,"spec":{...}
	changed    string // the same, with something changed that may change
	invalid    string // the same, well-formed but not valid
	mistyped   string // a member of the wrong JSON type
	unknown    string // members of which one is unknown
}

func (k kind) all() string        { return k.prefix + "/" + k.name }
func (k kind) collection() string { return k.prefix + "/namespaces/$NS/" + k.name }
func (k kind) item(name string) string {
	return k.collection() + "/" + name
}
func (k kind) watchAll() string        { return k.prefix + "/watch/" + k.name }
func (k kind) watchCollection() string { return k.prefix + "/watch/namespaces/$NS/" + k.name }
func (k kind) watchItem(name string) string {
	return k.watchCollection() + "/" + name
}

// object is a valid object of that name; meta holds more members of metadata.
func (k kind) object(name string, meta ...string) string { return k.body(k.valid, name, meta...) }

func (k kind) body(rest, name string, meta ...string) string {
	members := append([]string{fmt.Sprintf("%q:%q", "name", name)}, meta...)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s}%s}`, k.apiVersion, k.kind, strings.Join(members, ","), rest)
}

var (
	leases = kind{
		name: "leases", prefix: "/apis/coordination.k8s.io/v1", apiVersion: "coordination.k8s.io/v1", kind: "Lease",
		valid:    `,"spec":{"holderIdentity":"me","leaseDurationSeconds":15}`,
		changed:  `,"spec":{"holderIdentity":"you","leaseDurationSeconds":20,"renewTime":"2024-05-06T07:08:09.123456Z"}`,
		invalid:  `,"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}`,
		mistyped: `,"spec":{"holderIdentity":7}`,
		unknown:  `,"spec":{"holderIdentity":"me","nonsense":1},"more":true`,
	}
	endpoints = kind{
		name: "endpoints", prefix: "/api/v1", apiVersion: "v1", kind: "Endpoints",
		valid:    `,"subsets":[{"addresses":[{"ip":"10.1.2.3"}],"ports":[{"port":80}]}]`,
		changed:  `,"subsets":[{"addresses":[{"ip":"10.1.2.4","hostname":"h"}],"notReadyAddresses":[{"ip":"10.1.2.5"}],"ports":[{"name":"a","port":80},{"name":"b","port":81,"protocol":"UDP"}]}]`,
		invalid:  `,"subsets":[{"addresses":[{"ip":"127.0.0.1"},{"ip":"010.1.1.1"}],"ports":[{"port":0},{"port":70000,"protocol":"ICMP"}]},{}]`,
		mistyped: `,"subsets":"none"`,
		unknown:  `,"subsets":[{"addresses":[{"ip":"10.1.2.3","mac":"x"}]}],"more":true`,
	}
	events = kind{
		name: "events", prefix: "/apis/events.k8s.io/v1", apiVersion: "events.k8s.io/v1", kind: "Event",
		valid: `,"eventTime":"2024-05-06T07:08:09.123456Z","action":"Act","reason":"Reason","note":"note","type":"Normal",` +
			`"reportingController":"example.com/c","reportingInstance":"i","regarding":{"kind":"Pod","name":"p","namespace":"$NS","apiVersion":"v1"}`,
		changed: `,"eventTime":"2024-05-06T07:08:09.123456Z","action":"Act","reason":"Reason","note":"note","type":"Normal",` +
			`"reportingController":"example.com/c","reportingInstance":"i","regarding":{"kind":"Pod","name":"p","namespace":"$NS","apiVersion":"v1"},` +
			`"series":{"count":2,"lastObservedTime":"2024-05-06T07:09:09.123456Z"}`,
		invalid:  `,"eventTime":"2024-05-06T07:08:09.123456Z","type":"Odd","deprecatedCount":3`,
		mistyped: `,"eventTime":"2024-05-06T07:08:09Z"`,
		unknown: `,"eventTime":"2024-05-06T07:08:09.123456Z","action":"Act","reason":"Reason","type":"Normal","reportingController":"example.com/c",` +
			`"reportingInstance":"i","regarding":{"namespace":"$NS","color":"red"},"more":true`,
	}
	coreEvents = kind{
		name: "events", prefix: "/api/v1", apiVersion: "v1", kind: "Event",
		valid: `,"involvedObject":{"kind":"Pod","name":"p","namespace":"$NS"},"reason":"Reason","message":"message","type":"Normal","count":1,` +
			`"source":{"component":"c","host":"h"},"firstTimestamp":"2024-05-06T07:08:09Z","lastTimestamp":"2024-05-06T07:08:09Z"`,
		changed: `,"involvedObject":{"kind":"Pod","name":"p","namespace":"$NS"},"reason":"Other","message":"changed","type":"Warning","count":2,` +
			`"source":{"component":"c","host":"h"},"firstTimestamp":"2024-05-06T07:08:09Z","lastTimestamp":"2024-05-06T07:10:09Z"`,
		invalid:  `,"involvedObject":{"kind":"Pod","name":"p","namespace":"elsewhere"}`,
		mistyped: `,"involvedObject":{},"count":"three"`,
		unknown:  `,"involvedObject":{"namespace":"$NS","color":"red"},"more":true`,
	}
	pods = kind{
		name: "pods", prefix: "/api/v1", apiVersion: "v1", kind: "Pod",
		valid:    `,"spec":{"containers":[{"name":"c","image":"example.com/image:1"}]}`,
		changed:  `,"spec":{"containers":[{"name":"c","image":"example.com/image:2"}]}`,
		invalid:  `,"spec":{"containers":[{"name":"C_","image":""},{"name":"d","image":" x"}],"restartPolicy":"Maybe"}`,
		mistyped: `,"spec":{"containers":{}}`,
		unknown:  `,"spec":{"containers":[{"name":"c","image":"example.com/image:1","magic":1}]},"more":true`,
	}
	services = kind{
		name: "services", prefix: "/api/v1", apiVersion: "v1", kind: "Service",
		valid:    `,"spec":{"ports":[{"name":"web","port":80}],"selector":{"app":"a"}}`,
		changed:  `,"spec":{"ports":[{"name":"web","port":80,"targetPort":8080},{"name":"more","port":81}],"selector":{"app":"b"}}`,
		invalid:  `,"spec":{"ports":[{"port":0},{"name":"UP","port":70000}],"type":"Odd","sessionAffinity":"Some"}`,
		mistyped: `,"spec":{"ports":"80"}`,
		unknown:  `,"spec":{"ports":[{"port":80,"magic":1}]},"more":true`,
	}
	kinds = []kind{leases, endpoints, events, coreEvents, pods, services}
)

func (k kind) String() string { return k.apiVersion + "/" + k.name }

// jsonBody keeps the body as it is although the answer is asked for as protobuf.
func (s step) jsonBody() step { s.proto = false; return s }
