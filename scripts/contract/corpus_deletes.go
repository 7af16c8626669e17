package main

import "strings"

// deletes of one object.
func deletes(k kind) []sequence {
	var all, bodies []step
	again := []step{patch("merge", k.item("a"), `{"metadata":{"finalizers":null}}`), del(k.item("a"), "gracePeriodSeconds=0"),
		get(k.item("a"))}
	for _, option := range []string{
		"", "gracePeriodSeconds=0", "gracePeriodSeconds=5", "gracePeriodSeconds=-1", "gracePeriodSeconds=abc",
		"orphanDependents=true", "orphanDependents=false", "propagationPolicy=Orphan", "propagationPolicy=Background",
		"propagationPolicy=Foreground", "propagationPolicy=Nonsense", "propagationPolicy=",
		"propagationPolicy=Orphan&orphanDependents=true", "dryRun=All", "dryRun=None",
		"ignoreStoreReadErrorWithClusterBreakingPotential=true", "gracePeriodSeconds=1&gracePeriodSeconds=2",
	} {
		kept, gone := get(k.item("a")), get(k.item("a"))
		if strings.Contains(option, "rphan") || strings.Contains(option,
			"Foreground") { // the garbage collector is at work meanwhile
			kept, gone = kept.saying(k.afterCollector()), gone.later()
		}
		if option == "orphanDependents=true" || option == "propagationPolicy=Orphan" || option == "propagationPolicy=Foreground" {
			gone = gone.saying(" 404")
		}
		all = append(all, post(k.collection(), k.object("a", `"finalizers":["example.com/wait"]`)), del(k.item("a"), option), kept)
		all = append(all, again...)
		all = append(all, post(k.collection(), k.object("a")), del(k.item("a"), option), gone)
		all = append(all, again...)
	}
	for _, body := range []string{
		`{}`, `{"gracePeriodSeconds":0}`, `{"gracePeriodSeconds":-3}`, `{"gracePeriodSeconds":"x"}`,
		`{"propagationPolicy":"Nonsense"}`, `{"propagationPolicy":"Background"}`, `{"orphanDependents":false}`,
		`{"orphanDependents":true,"propagationPolicy":"Orphan"}`, `{"dryRun":["All"]}`,
		`{"dryRun":["x"]}`, `{"kind":"DeleteOptions","apiVersion":"v1"}`, `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1"}`,
		`{"kind":"DeleteOptions","apiVersion":"` + k.apiVersion + `"}`, `{"kind":"DeleteOptions","apiVersion":"nonsense/v1"}`,
		`{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"DeleteOptions"}`, `{"apiVersion":"v1"}`, `[]`, `{`, `nonsense`, ` `, `null`,
		`{"unknown":1}`, `{"preconditions":{}}`, `{"preconditions":{"uid":""}}`,
		`{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`,
		`{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`,
	} {
		bodies = append(bodies, post(k.collection(), k.object("a")), del(k.item("a"), "propagationPolicy=Nonsense").send(body),
			del(k.item("a")).send(body), get(k.item("a")), del(k.collection()).send(body), get(k.collection()))
	}
	bodies = append(bodies, post(k.collection(), k.object("a")),
		del(k.item("a")).send("gracePeriodSeconds: 0\n").with("Content-Type", "application/yaml"),
		del(k.item("a")).send("{}").with("Content-Type", "text/plain"), del(k.item("a")).with("Content-Type", "text/plain"))
	return []sequence{{"deletes", all}, {"bodies of deletes", bodies}}
}

// afterCollector is what an object with the finalizer example.com/wait says when
// the garbage collector has taken its own finalizer away.
func (k kind) afterCollector() string {
	if k.name == "events" { // it doesn't have one
		return ""
	}
	return "\"finalizers\": [\n   \"example.com/wait\"\n  ]"
}

// collections are deletes of many.
func collections(k kind) []sequence {
	list := k.collection()
	return []sequence{{"deletes of collections", append(append([]step{watching(list, "watch=true"), del(list), del(k.all())},
		three(k)...),
		del(list, param("labelSelector", "app=web"), "dryRun=All"), del(list, param("labelSelector", "app=web")), get(list),
		del(list, param("fieldSelector", "metadata.name=b")), del(list, param("labelSelector", "nothing")),
		post(list, k.object("d")), post(list, k.object("e")), del(list, "limit=1"), get(list), del(list, "limit=1", "continue=x"),
		del(list, "limit=abc"), del(list, "resourceVersion=0"), post(list, k.object("f")), del(list, "resourceVersion=abc"),
		del(list, "resourceVersionMatch=Exact"), del(list, "sendInitialEvents=true"),
		del(list, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), del(list, "timeoutSeconds=abc"),
		del(list, "timeoutSeconds=5", param("fieldSelector", "metadata.name=none")),
		post(list, k.object("g", `"finalizers":["example.com/wait"]`)), del(list, "propagationPolicy=Nonsense"),
		del(list, "gracePeriodSeconds=abc"), del(list, "watch=true", param("fieldSelector", "metadata.name=none")),
		del(list).accepting(table), get(list), post(list, k.object("h")), del(list).accepting("application/yaml"),
		post(list, k.object("i")), del(list).accepting("text/html"), del(list).accepting(partialList), get(list),
		patch("merge", k.item("g"), `{"metadata":{"finalizers":null}}`), get(list))}}
}

// finalizers keep an object.
func finalizers(k kind) []sequence {
	list := k.collection()
	return []sequence{{"finalizers", []step{
		watching(list, "watch=true"), watching(list, "watch=true").accepting(protobufStream),
		post(list, k.object("a", `"finalizers":["example.com/one","example.com/two"]`)), del(k.item("a")), get(k.item("a")),
		del(k.item("a")), del(k.item("a"), "gracePeriodSeconds=0"),
		patch("merge", k.item("a"), `{"metadata":{"finalizers":["example.com/one","example.com/two","example.com/three"]}}`),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"still":"here"}}}`), post(list, k.object("a")),
		put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`, `"finalizers":["example.com/one"]`)),
		patch("json", k.item("a"), `[{"op":"remove","path":"/metadata/finalizers"}]`), get(k.item("a")), post(list, k.object("a")),
		post(list, k.object("b", `"finalizers":["example.com/one"]`)), del(k.item("b"), "orphanDependents=false"),
		put(k.item("b"), k.object("b", `"resourceVersion":"{{b.rv}}"`)), get(k.item("b")),
		post(list, k.object("c", `"finalizers":["example.com/one"]`)), del(k.item("c")),
		patch("apply", k.item("c"), k.body("", "c"), "fieldManager=contract", "force=true"),
		patch("merge", k.item("c"), `{"metadata":{"finalizers":[]}}`, "dryRun=All"),
		patch("strategic", k.item("c"), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/one"]}}`),
		get(k.item("c")),
	}}}
}

// garbage is what the collector is for. It needs a moment, so every step waits
// for the state that stays: on the way there servers agree by chance only.
func garbage() []sequence {
	owner := func(block string) string {
		return `"ownerReferences":[{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","name":"owner","uid":"{{owner.uid}}"` + block + `}]`
	}
	var all []sequence
	for _, policy := range []string{"", "propagationPolicy=Background", "propagationPolicy=Foreground", "propagationPolicy=Orphan",
		"orphanDependents=true", "orphanDependents=false"} {
		child := " 404"
		if policy == "propagationPolicy=Orphan" || policy == "orphanDependents=true" {
			child = " 200" // the owner goes once its children have been let go
		}
		all = append(all, sequence{"garbage, " + policy, []step{
			post(leases.collection(), leases.object("owner")), post(leases.collection(), leases.object("child", owner(""))),
			post(pods.collection(), pods.object("child", owner(`,"blockOwnerDeletion":true`))),
			del(leases.item("owner"), policy), get(leases.item("owner")).saying(" 404"), get(leases.item("child")).saying(child),
			get(pods.item("child")).saying(child),
		}})
	}
	return append(all, sequence{"garbage without an owner", []step{
		post(leases.collection(), leases.object("child",
			`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"none","uid":"11111111-2222-3333-4444-555555555555"}]`)),
		get(leases.item("child")).saying(" 404"),
	}})
}

// namespaces come and go with what is in them.
func namespaces() []sequence {
	space := "/api/v1/namespaces/$NS-x"
	make := post("/api/v1/namespaces", `{"metadata":{"name":"$NS-x"}}`)
	inside := "/apis/coordination.k8s.io/v1/namespaces/$NS-x/leases"
	return []sequence{
		{"a namespace's end", []step{
			make, post(inside, leases.object("a")), del(space), get(inside + "/a").saying(" 404"), get(space).saying(" 404"),
			post(inside, leases.object("b")), get(inside), del(space),
		}},
		{"a namespace that is kept", []step{
			make, post(inside, leases.object("a", `"finalizers":["example.com/wait"]`)), del(space), get(inside).saying("deletionTimestamp"),
			post(inside, leases.object("b")), put(inside+"/c", leases.object("c")),
			patch("apply", inside+"/d", leases.object("d"), "fieldManager=m"),
			patch("merge", inside+"/a", `{"metadata":{"finalizers":null}}`), get(inside + "/a").saying(" 404"),
		}},
		{"namespaces", []step{
			post("/api/v1/namespaces", `{"metadata":{"name":"UPPER"}}`), post("/api/v1/namespaces", `{"metadata":{"name":"a.b"}}`),
			post("/api/v1/namespaces", `{"metadata":{"generateName":"$NS-"}}`), make, make, get(space), get(space).accepting(table),
			get(space + "/status"),
			put(space, `{"metadata":{"name":"$NS-x","labels":{"a":"b"}}}`),
			put(space, `{"metadata":{"name":"$NS-x"},"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}`),
			put(space+"/status", `{"metadata":{"name":"$NS-x"},"status":{"phase":"Terminating"}}`),
			patch("merge", space+"/status", `{"status":{"conditions":[{"type":"X","status":"True"}]}}`),
			patch("merge", space, `{"metadata":{"labels":{"kubernetes.io/metadata.name":"other"}}}`),
			patch("merge", space, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"nonsense"}}}`),
			patch("apply", space, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$NS-x","annotations":{"x":"y"}}}`,
				"fieldManager=m"), put(space+"/finalize",
				`{"metadata":{"name":"$NS-x"},"spec":{"finalizers":["kubernetes","example.com/x"]}}`),
			del("/api/v1/namespaces/default"), del("/api/v1/namespaces/kube-system"), del("/api/v1/namespaces/kube-public"),
			del("/api/v1/namespaces/default", "dryRun=All"), del("/api/v1/namespaces"), get("/api/v1/namespaces/$NS-missing"),
			get("/api/v1/namespaces", param("fieldSelector", "status.phase=Active,metadata.name=$NS-x")),
			get("/api/v1/namespaces", param("fieldSelector", "name=$NS-x")),
			get("/api/v1/namespaces", param("fieldSelector", "nonsense=x")),
			get("/api/v1/namespaces", param("labelSelector", "kubernetes.io/metadata.name=$NS-x")),
			get("/api/v1/namespaces/default").accepting(partial),
		}},
	}
}
