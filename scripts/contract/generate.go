package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

const stepsOfSequence = 14

// generate makes one sequence: random requests about a few names of one kind.
// The same seed and number always make the same one, so that --only finds it.
func generate(seed int64, number int) sequence {
	g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(number)))}
	g.kind = pick(g, append(kinds, leases, pods)...)
	q := sequence{name: fmt.Sprintf("seed %d number %d, %s", seed, number, g.kind)}
	for g.chance(40) && len(q.steps) < 3 {
		q.steps = append(q.steps, g.watch())
	}
	q.steps = append(q.steps, post(g.kind.collection(), g.kind.object(g.name())))
	for len(q.steps) < stepsOfSequence {
		q.steps = append(q.steps, g.request())
	}
	return q
}

type generator struct {
	*rand.Rand
	kind
	named bool // an object without a name is enough: two would list in any order
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) name() string { return pick(g, "a", "a", "b", "b", "c") }

// request is any request but a watch from the start.
func (g *generator) request() step {
	var s step
	switch n := g.IntN(100); {
	case n < 18:
		s = post(g.collection(), g.object(g.name()), g.query(writing)...)
	case n < 32:
		s = g.put()
	case n < 54:
		s = g.patch()
	case n < 64:
		s = g.delete()
	case n < 68:
		s = del(g.collection(), g.query(deleting, selecting)...).send(g.deleteOptions())
	case n < 78:
		s = get(g.item(g.name()), g.query(reading)...)
	case n < 92:
		s = get(g.collection(), g.query(selecting, turning, reading)...)
	case n < 95:
		s = g.watch()
	default:
		s = g.odd()
	}
	return g.encode(s)
}

// encode sometimes asks for another encoding, or uses one.
func (g *generator) encode(s step) step {
	if g.chance(80) || s.watch {
		return s
	}
	if g.chance(30) && (s.method == "POST" || s.method == "PUT") {
		if _, err := toProtobuf([]byte(s.body)); err == nil {
			return s.asProto()
		}
	}
	return s.accepting(pick(g, "application/yaml", protobufMedia, protobufMedia, table, table, partial, partialList,
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "text/plain", "*/*"))
}

func (g *generator) put() step {
	name := g.name()
	version := pick(g, `"resourceVersion":"{{`+name+`.rv}}"`, `"resourceVersion":"{{`+name+`.rv}}"`,
		`"resourceVersion":"{{first `+name+`.rv}}"`, `"labels":{"x":"y"}`, `"uid":"{{`+name+`.uid}}"`)
	path := g.item(name) + g.subresource()
	return put(path, g.object(name, version), g.query(writing)...)
}

func (g *generator) subresource() string {
	if g.kind.name == "pods" && g.chance(25) {
		return "/" + pick(g, "status", "status", "ephemeralcontainers", "resize")
	}
	return ""
}

func (g *generator) patch() step {
	name := g.name()
	path := g.item(name) + g.subresource()
	switch g.IntN(5) {
	case 0:
		return patch("json", path, g.jsonPatch(), g.query(writing)...)
	case 1:
		return patch("strategic", path, g.fragment(), g.query(writing)...)
	case 2, 3:
		query := append(g.query(writing), "fieldManager="+pick(g, "one", "two", "contract"),
			pick(g, "", "", "force=true", "force=false"))
		return patch("apply", path, g.object(name), query...)
	default:
		return patch("merge", path, g.fragment(), g.query(writing)...)
	}
}

// metadataParts are members of metadata that leave the garbage collector alone,
// which works when it likes.
var metadataParts = []string{
	`"labels":{"x":"y"}`, `"labels":{"x":"z","app":"web"}`, `"labels":null`, `"labels":{"x":null}`, `"annotations":{"k":"v"}`,
	`"annotations":{"k":"w","l":"m"}`, `"finalizers":["example.com/wait"]`, `"finalizers":[]`, `"finalizers":null`,
	`"finalizers":["example.com/wait","example.com/other"]`, `"resourceVersion":"{{a.rv}}"`, `"resourceVersion":"{{first a.rv}}"`,
	`"resourceVersion":""`, `"uid":"{{a.uid}}"`, `"generation":5`, `"name":"a"`, `"namespace":"$NS"`, `"generateName":"g-"`,
	`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"t","uid":"u"}]`, `"managedFields":[{}]`,
	`"managedFields":[]`, `"labels":{"bad value":"x"}`, `"deletionTimestamp":"2024-05-06T07:08:09Z"`, `"unknown":1`,
}

func (g *generator) metadata() (parts []string) {
	for g.chance(35) {
		parts = append(parts, pick(g, metadataParts...))
	}
	return parts
}

// object is an object of the kind: valid, wrong in a known way, or mutated.
func (g *generator) object(name string, meta ...string) string {
	meta = append(meta, g.metadata()...)
	rest := pick(g, g.valid, g.valid, g.valid, g.changed, g.changed, g.changed, g.invalid, g.mistyped, g.unknown, "")
	if !g.named && g.chance(4) {
		g.named = true
		return fmt.Sprintf(`{"metadata":{"generateName":"g-"}%s}`, rest)
	}
	text := g.body(rest, name, meta...)
	if g.chance(25) {
		text = g.mutate(text)
	}
	return text
}

// fragment is a part of an object, to be merged into one.
func (g *generator) fragment() string {
	parts := []string{`"metadata":{` + strings.Join(append(g.metadata(), g.metadata()...), ",") + `}`}
	if g.chance(40) {
		parts = append(parts, pick(g, g.valid, g.changed, g.changed, g.invalid, g.mistyped, g.unknown)[1:])
	}
	text := "{" + strings.Join(parts, ",") + "}"
	if g.chance(15) {
		text = g.mutate(text)
	}
	return text
}

// mutate replaces, removes or adds something somewhere below the top of an object.
func (g *generator) mutate(text string) string {
	value, err := fromJSON([]byte(text))
	if err != nil { // a member twice, say
		return text
	}
	object := value.(map[string]any)
	for {
		keys := slices.DeleteFunc(sortedKeys(object), func(key string) bool { return key == "metadata" })
		if len(keys) == 0 {
			break
		}
		key := pick(g, keys...)
		inner, ok := object[key].(map[string]any)
		if list, isList := object[key].([]any); isList && len(list) > 0 {
			inner, ok = list[0].(map[string]any)
		}
		if ok && len(inner) > 0 && g.chance(75) {
			object = inner
			continue
		}
		switch g.IntN(4) {
		case 0:
			delete(object, key)
		case 1:
			maps.Copy(object, map[string]any{pick(g, "name", "extra", "holderIdentity", "port", "type"): g.value()})
		default:
			object[key] = g.value()
		}
		break
	}
	mutated, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(mutated)
}

func (g *generator) value() any {
	return pick[any](g, nil, "", "text", "a b", "UPPER", "2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09Z", "10.1.2.3", 0, 1,
		-1, 7, 1.5, 1<<40, true, false, []any{}, map[string]any{}, []any{"x"}, map[string]any{"x": "y"}, strings.Repeat("l", 130))
}

func (g *generator) jsonPatch() string {
	var operations []string
	for range 1 + g.IntN(3) {
		path := pick(g, "/metadata/labels", "/metadata/labels/x", "/metadata/annotations", "/metadata/annotations/k",
			"/metadata/finalizers/-", "/metadata/finalizers", "/spec", "/spec/holderIdentity", "/spec/containers/0/image",
			"/subsets/0/ports/-", "/subsets/0", "/note", "/message", "/count", "/metadata/name", "/metadata/resourceVersion",
			"/kind", "/nonsense", "")
		value, _ := json.Marshal(pick[any](g, "text", map[string]any{"x": "y"}, []any{"example.com/wait"}, 5, nil,
			"example.com/wait"))
		operations = append(operations, fmt.Sprintf(`{"op":%q,"path":%q,"value":%s}`,
			pick(g, "add", "add", "add", "replace", "replace", "remove", "test"), path, value))
	}
	return "[" + strings.Join(operations, ",") + "]"
}

func (g *generator) delete() step {
	name := g.name()
	s := del(g.item(name), g.query(deleting)...)
	return s.send(strings.ReplaceAll(g.deleteOptions(), "NAME", name))
}

func (g *generator) deleteOptions() string {
	return pick(g, "", "", "", "", "{}", `{"gracePeriodSeconds":0}`, `{"gracePeriodSeconds":3}`,
		`{"preconditions":{"uid":"{{NAME.uid}}"}}`, `{"preconditions":{"resourceVersion":"{{NAME.rv}}"}}`,
		`{"preconditions":{"resourceVersion":"{{first NAME.rv}}"}}`,
		`{"dryRun":["All"]}`, `{"propagationPolicy":"Background"}`, `{"orphanDependents":false}`,
		`{"kind":"DeleteOptions","apiVersion":"v1"}`, `{"propagationPolicy":"Odd"}`)
}

func (g *generator) watch() step {
	begin := pick(g, "", "", "resourceVersion={{a.rv}}", "resourceVersion={{list.rv}}",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "allowWatchBookmarks=true")
	s := watching(g.collection(), append(g.query(selecting), "watch=true", begin)...)
	switch g.IntN(10) {
	case 0, 1:
		return s.accepting(protobufStream)
	case 2:
		return s.accepting(partial)
	case 3:
		return watching(pick(g, g.watchItem(g.name()), g.watchCollection()), begin)
	default:
		return s
	}
}

// odd is a method or a path that few use.
func (g *generator) odd() step {
	path := pick(g, g.collection(), g.item(g.name()), g.all(), g.watchItem(g.name()), g.item(g.name())+"/status",
		g.item(g.name())+"/log", g.item(g.name())+"/nonsense", pods.item(g.name())+"/eviction")
	s := do(pick(g, "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"), path, g.query(writing)...)
	if s.method == "POST" || s.method == "PUT" {
		return s.send(g.object(g.name()))
	}
	return s
}

// Parameters with values, right and wrong.
var (
	writing = []string{
		"dryRun=All", "dryRun=All", "dryRun=Some", "fieldManager=one", "fieldManager=two", "fieldValidation=Strict",
		"fieldValidation=Ignore", "fieldValidation=Warn", "fieldValidation=Odd", "pretty=true", "force=true", "timeout=10s",
		"timeout=x",
	}
	deleting = []string{"gracePeriodSeconds=0", "gracePeriodSeconds=5", "gracePeriodSeconds=-1", "gracePeriodSeconds=x",
		"propagationPolicy=Background", "propagationPolicy=Odd", "orphanDependents=false", "dryRun=All", "dryRun=Some"}
	selecting = []string{
		"labelSelector=x%3Dy", "labelSelector=x", "labelSelector=!x", "labelSelector=x%20in%20(y,z)",
		"labelSelector=x%20notin%20(y)", "labelSelector=app!%3Dweb", "labelSelector=%3D", "fieldSelector=metadata.name%3Da",
		"fieldSelector=metadata.name!%3Da",
		"fieldSelector=metadata.namespace%3D$NS", "fieldSelector=status.phase%3DPending", "fieldSelector=type%3DNormal",
		"fieldSelector=odd%3D1",
	}
	turning = []string{"limit=1", "limit=2", "limit=1&continue={{list.continue}}", "continue={{list.continue}}", "limit=x",
		"continue=x", "limit=-1"}
	reading = []string{
		"resourceVersion=", "resourceVersion=0", "resourceVersion={{a.rv}}", "resourceVersion={{list.rv}}",
		"resourceVersion={{list.rv}}&resourceVersionMatch=Exact", "resourceVersion={{first list.rv}}&resourceVersionMatch=Exact",
		"resourceVersion={{first a.rv}}&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
		"resourceVersionMatch=Odd", "resourceVersion=x", "pretty=true", "includeObject=Object", "includeObject=None",
		"timeoutSeconds=5", "timeoutSeconds=x",
	}
)

// query takes some parameters of the sets.
func (g *generator) query(sets ...[]string) (query []string) {
	for _, set := range sets {
		for g.chance(25) {
			query = append(query, pick(g, set...))
		}
	}
	return query
}
