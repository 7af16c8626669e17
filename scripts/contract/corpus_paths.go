package main

// paths that lead nowhere, or elsewhere.
func paths() []sequence {
	var nowhere []step
	for _, path := range []string{
		"/", "/api", "/api/", "/apis", "/apis/", "/api/v1", "/api/v1/", "/api/v2", "/api/v2/pods", "/api/v1/nonsense",
		"/api/v1/nonsense/x",
		"/api/v1/namespaces/$NS/nonsense", "/api/v1/namespaces/$NS/nonsense/x", "/api/v1/namespaces/$NS/pods/a/nonsense",
		"/api/v1/namespaces/$NS/pods/a/status/x", "/api/v1/namespaces/$NS/endpoints/a/status", "/api/v1/namespaces/$NS/pods/",
		"/api/v1/namespaces/$NS/", "/api/v1/namespaces//pods", "/api/v1//pods", "//api/v1/pods", "/api/v1/namespaces/$NS/pods//",
		"/api/v1/watch", "/api/v1/watch/nonsense", "/api/v1/watch/namespaces/$NS/nonsense",
		"/api/v1/watch/namespaces/$NS/nonsense/a",
		"/api/v1/proxy/nodes/x", "/api/v1/leases", "/api/v1/namespaces/$NS/leases",
		"/apis/nonsense.example.com", "/apis/nonsense.example.com/v1", "/apis/nonsense.example.com/v1/things",
		"/apis/nonsense.example.com/v1/namespaces/$NS/things/x",
		"/apis/coordination.k8s.io", "/apis/coordination.k8s.io/", "/apis/coordination.k8s.io/v1", "/apis/coordination.k8s.io/v9",
		"/apis/coordination.k8s.io/v9/leases",
		"/apis/coordination.k8s.io/v1/nonsense", "/apis/coordination.k8s.io/v1/namespaces/$NS/leases/a/status",
		"/apis/coordination.k8s.io/v1/namespaces/$NS",
		"/apis/coordination.k8s.io/v1/namespaces/$NS/leases/a%20b", "/apis/coordination.k8s.io/v1/namespaces/$NS/leases/a%2Fb",
		"/apis/coordination.k8s.io/v1/namespaces/$NS/leases/..", "/apis/coordination.k8s.io/v1/namespaces/$NS/leases/../leases",
		"/apis/coordination.k8s.io/v1/namespaces/$NS/leases/./x", "/API/v1/pods", "/nonsense", "/healthz", "/livez", "/readyz",
		"/healthz/ping", "/livez/ping",
		"/readyz/ping", "/readyz/nonsense",
	} {
		nowhere = append(nowhere, get(path))
	}
	for _, path := range []string{"/nonsense", "/api", "/apis", "/api/v1", "/apis/coordination.k8s.io",
		"/apis/coordination.k8s.io/v1", "/version", "/healthz", "/openapi/v2", "/openapi/v3"} {
		nowhere = append(nowhere, do("HEAD", path), post(path, "{}"), put(path, "{}"), del(path), do("OPTIONS", path))
	}
	return []sequence{{"paths that lead nowhere", nowhere}}
}

// verbs sends every method to every path of a kind.
func verbs(k kind) []sequence {
	missing := "/namespaces/no-such-namespace/" + k.name
	return []sequence{
		{"every method on the collection", append(everyMethod(k.collection(), k.object("a")), get(k.collection()))},
		{"every method on all namespaces", everyMethod(k.all(), k.object("a"))},
		{"every method on an object", append([]step{post(k.collection(), k.object("a"))},
			everyMethod(k.item("a"), k.object("a"))...)},
		{"every method on a missing object", everyMethod(k.item("missing"), k.object("missing"))},
		{"every method on the watch paths", []step{
			post(k.watchAll(), k.object("a")), del(k.watchAll()), put(k.watchAll(), k.object("a")), do("HEAD", k.watchAll()),
			post(k.watchCollection(), k.object("a")), del(k.watchCollection()), patch("merge", k.watchCollection(), `{}`),
			post(k.watchItem("a"), k.object("a")), del(k.watchItem("a")), put(k.watchItem("a"), k.object("a")),
			do("OPTIONS", k.watchItem("a")),
		}},
		{"a namespace that is missing", []step{
			get(k.prefix + missing), get(k.prefix + missing + "/a"), post(k.prefix+missing, `{"metadata":{"name":"a"}`+k.valid+`}`),
			put(k.prefix+missing+"/a", `{"metadata":{"name":"a"}`+k.valid+`}`), del(k.prefix + missing + "/a"),
			del(k.prefix + missing),
			patch("merge", k.prefix+missing+"/a", `{}`), patch("apply", k.prefix+missing+"/a", k.object("a"), "fieldManager=m"),
		}},
		{"life", []step{
			watching(k.collection(), "watch=1"), watching(k.watchCollection()), watching(k.watchItem("a")),
			watching(k.all(), "watch=true"),
			watching(k.collection(), "watch=true", "allowWatchBookmarks=true").accepting(protobufStream),
			get(k.collection()), get(k.all()),
			post(k.collection(), k.object("a")), post(k.collection(), k.object("a")), get(k.item("a")),
			put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{a.rv}}"`)), get(k.item("a")),
			put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{a.rv}}"`)),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`),
			post(k.collection(), k.object("b")), get(k.collection()), get(k.all()),
			del(k.item("a")), get(k.item("a")), del(k.item("a")), get(k.collection()),
			post(k.collection(), k.object("a")), get(k.item("a")),
			get(k.item("a"), "watch=true"), get(k.item("a"), "watch=true&resourceVersion=0"),
			del(k.collection()), get(k.collection()),
		}},
		{"put of a missing object", []step{
			put(k.item("a"), k.object("a")), put(k.item("b"), k.body(k.valid, "b", `"resourceVersion":"12"`)),
			put(k.item("c"), k.body(k.valid, "c", `"uid":"11111111-2222-3333-4444-555555555555"`)),
			put(k.item("d"), k.object("d"), "dryRun=All"),
			put(k.item("e"), k.body(k.invalid, "e")), get(k.collection()),
		}},
	}
}

// deprecatedWatches are the paths below /watch/.
func deprecatedWatches(k kind) []sequence {
	return []sequence{{"watch paths", []step{
		post(k.collection(), k.object("a")), post(k.collection(), k.object("b")),
		watching(k.watchItem("a")), watching(k.watchItem("a"), param("fieldSelector", "metadata.name=a")),
		watching(k.watchItem("a"), param("fieldSelector", "metadata.name=b")),
		watching(k.watchItem("a"), param("fieldSelector", "metadata.name!=b")),
		watching(k.watchItem("a"), param("labelSelector", "x=y")),
		watching(k.watchItem("absent")), watching(k.watchCollection(), "watch=false"),
		watching(k.watchCollection(), "watch=0", "resourceVersion={{b.rv}}"),
		watching(k.watchAll(), param("fieldSelector", "metadata.namespace=$NS")),
		watching(k.watchAll(), param("fieldSelector", "metadata.namespace=$NS,metadata.name=b")),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`), post(k.collection(), k.object("absent")),
		del(k.item("b")),
		collect(),
		get(k.item("a"), "watch=true"), get(k.collection(), "watch=false"), get(k.collection(), "watch=0"),
		get(k.collection(), "watch=False"),
		watching(k.collection(), "watch="), watching(k.collection(), "watch=maybe"), watching(k.collection(), "watch"),
		watching(k.collection(), "watch=true&watch=false"), get(k.collection(), "watch=false&watch=true"),
	}}}
}

var subresources = []string{"status", "ephemeralcontainers", "resize", "log", "binding", "eviction", "exec", "attach",
	"portforward", "proxy"}

func subresourceVerbs() (all []sequence) {
	for _, name := range subresources {
		all = append(all,
			sequence{"every method on pods/" + name, append([]step{post(pods.collection(), pods.object("a"))},
				everyMethod(pods.item("a")+"/"+name, pods.object("a"))...)},
			sequence{"every method on a missing pod's " + name, everyMethod(pods.item("missing")+"/"+name, pods.object("missing"))})
	}
	all = append(all, sequence{"every method on bindings", everyMethod("/api/v1/namespaces/$NS/bindings",
		`{"metadata":{"name":"x"},"target":{"name":"n"}}`)})
	return all
}

// clusterVerbs are namespaces and nodes, which live outside of namespaces.
func clusterVerbs() []sequence {
	namespace := `{"metadata":{"name":"$NS-x"}}`
	node := `{"metadata":{"name":"$NS-x"},"spec":{"podCIDR":"10.1.0.0/24"}}`
	mine := param("fieldSelector", "metadata.name=$NS-x")
	var all []sequence
	for _, resource := range [][2]string{{"/api/v1/namespaces", namespace}, {"/api/v1/nodes", node}} {
		path, body := resource[0], resource[1]
		all = append(all,
			sequence{"every method on " + path, []step{
				get(path, mine), do("HEAD", path), post(path, body), post(path, body), put(path, body), patch("merge", path, `{}`),
				do("OPTIONS", path),
				get(path, mine), get(path, mine).accepting(table), get(path, mine).accepting(partialList),
				watching(path, mine, "watch=true"),
				patch("merge", path+"/$NS-x", `{"metadata":{"labels":{"a":"b"}}}`), del(path+"/$NS-x", "dryRun=All"),
				del(path, mine, "dryRun=All"),
			}},
			sequence{"every method on an object of " + path, append([]step{post(path, body)}, everyMethod(path+"/$NS-x", body)...)},
			sequence{"every method on a missing object of " + path, everyMethod(path+"/$NS-x", body)},
			sequence{"every method on the status of " + path,
				append([]step{post(path, body)}, everyMethod(path+"/$NS-x/status", body)...)})
	}
	all = append(all, sequence{"every method on a namespace's finalize",
		append([]step{post("/api/v1/namespaces", namespace)}, everyMethod("/api/v1/namespaces/$NS-x/finalize", namespace)...)})
	return all
}
