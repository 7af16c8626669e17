package main

import "strings"

// failures are the Status of everything that goes wrong.
func failures(k kind) []sequence {
	list := k.collection()
	return []sequence{{"failures", []step{
		post(list, k.object("a")), post(list, k.object("a")), post(list, k.body(k.invalid, "b")),
		post(list, k.body(k.invalid, "b")).accepting("application/yaml"), post(list, `{}`),
		post(list, `{"metadata":{}`+k.valid+`}`), post(list, k.object("UPPER")), post(list, k.object("-a")),
		post(list, k.object("a.b")), post(list, k.object("a..b")), post(list, k.object("a_b")), post(list, k.object("a/b")),
		post(list, k.object("..")),
		post(list, k.object(strings.Repeat("n", 253))), post(list, k.object(strings.Repeat("n", 254))),
		post(list, k.object("o", `"namespace":"other"`)), post(list, k.object("o", `"namespace":"$NS"`)),
		post(list, k.object("p", `"namespace":""`)),
		put(k.item("a"), k.object("b")), put(k.item("a"), k.body(k.valid, "")), put(k.item("a"), `{"metadata":{}`+k.valid+`}`),
		put(k.item("a"), k.object("a", `"namespace":"other"`)),
		put(k.item("a"), k.body(k.invalid, "a", `"resourceVersion":"{{a.rv}}"`)),
		patch("merge", k.item("a"), `{"metadata":{"name":"b"}}`), patch("merge", k.item("a"), `{"metadata":{"namespace":"other"}}`),
		patch("merge", k.item("a"), `{"kind":"Other"}`), patch("merge", k.item("a"), `{"apiVersion":"v9"}`),
		patch("merge", k.item("missing"), `{}`), patch("json", k.item("missing"), `[]`),
		patch("strategic", k.item("missing"), `{}`), put(k.item("missing"), k.body(k.invalid, "missing")), del(k.item("missing")),
		get(k.item("missing")),
		post(list, k.object("q")).accepting("text/html").with("Content-Type", "text/plain"), post(list, "{", "dryRun=x"),
		post(list, "{", "fieldManager=%01").with("Content-Type", "text/plain"),
		post(k.prefix+"/namespaces/no-such-namespace/"+k.name, k.body(k.invalid, "x")),
		post(k.prefix+"/namespaces/no-such-namespace/"+k.name, k.object("x", `"namespace":"$NS"`)),
		post(list, k.object("a"), "timeout=x").send("{"),
		get(list), get(k.item("a"), "timeout=x"), get(list, "timeout=x"), watching(list, "watch=true", "timeout=x"),
	}}}
}

// credentialsAndRights are answers to whom the server doesn't know or doesn't let.
func credentialsAndRights() []sequence {
	var all []step
	for _, user := range []string{"none", "stranger", "basic", "nobody"} {
		for _, path := range []string{"/api", "/apis", "/api/v1", "/version", "/healthz", "/livez", "/readyz", "/nonsense",
			"/openapi/v2", "/apis/coordination.k8s.io/v1", "/metrics", "/"} {
			if user != "nobody" || path != "/openapi/v2" && path != "/" && path != "/metrics" {
				all = append(all, get(path).as(user))
			}
		}
		for _, k := range []kind{leases, pods} {
			all = append(all, get(k.collection()).as(user), get(k.all()).as(user), get(k.item("a")).as(user),
				post(k.collection(), k.object("a")).as(user), put(k.item("a"), "{").as(user), patch("merge", k.item("a"), "{}").as(user),
				del(k.item("a")).as(user), del(k.collection()).as(user), get(k.collection(), "watch=true").as(user),
				get(k.watchItem("a")).as(user), do("HEAD", k.item("a")).as(user), do("OPTIONS", k.collection()).as(user),
				get(k.collection()).as(user).accepting("application/yaml"), get(k.collection()).as(user).accepting("text/html"),
				get(k.collection()).as(user).asProto(), get(k.collection(), param("fieldSelector", "metadata.name=x")).as(user),
				get(k.prefix+"/nonsense").as(user), get(k.collection(), "limit=abc").as(user))
		}
		all = append(all, get("/api/v1/nodes").as(user), get("/api/v1/namespaces/$NS").as(user),
			get(pods.item("a")+"/log").as(user), post(pods.item("a")+"/binding", "{}").as(user),
			put(pods.item("a")+"/status", "{}").as(user))
	}
	as := func(s step, pairs ...string) step {
		for i := 0; i < len(pairs); i += 2 {
			s = s.with(pairs[i], pairs[i+1])
		}
		return s
	}
	return []sequence{
		{"credentials and rights", all},
		{"impersonation", []step{
			as(get(leases.collection()), "Impersonate-User", "somebody"),
			as(get(leases.collection()), "Impersonate-User", "somebody", "Impersonate-Group", "system:masters"),
			as(get(leases.collection()), "Impersonate-Group", "x"),
			as(get(leases.collection()), "Impersonate-User", "nobody").as("nobody"),
			as(post(leases.collection(), leases.object("a")), "Impersonate-User", "somebody", "Impersonate-Group", "system:masters"),
			as(get(leases.collection()), "Impersonate-Uid", "x"),
			as(get(leases.collection()), "Impersonate-User", "system:serviceaccount:a:b"),
			as(get(leases.collection()), "Impersonate-User", "system:anonymous"),
		}},
	}
}

// sizes are bodies and annotations at their limits.
func sizes() []sequence {
	annotations := func(n int) string { return `"annotations":{"k":"` + strings.Repeat("v", n-1) + `"}` }
	return []sequence{{"sizes", []step{
		post(leases.collection(), leases.object("a", annotations(262144))),
		post(leases.collection(), leases.object("b", annotations(262145))),
		post(leases.collection(), leases.object("c", annotations(1<<20))),
		post(leases.collection(), leases.body(`,"spec":{"holderIdentity":"`+strings.Repeat("h", 1<<20)+`"}`, "d")),
		post(leases.collection(), strings.Repeat(" ", 3<<20)+"{}"),
		post(leases.collection(), leases.object("e")+strings.Repeat(" ", 3<<20)),
		put(leases.item("a"), leases.object("a")+strings.Repeat(" ", 3<<20)),
		patch("merge", leases.item("a"), "{}"+strings.Repeat(" ", 3<<20)),
		del(leases.item("a")).send("{}" + strings.Repeat(" ", 3<<20)),
		patch("json", leases.item("a"), `[`+strings.Repeat(`{"op":"add","path":"/metadata/labels","value":{}},`,
			10000)+`{"op":"add","path":"/metadata/labels","value":{}}]`),
		get(leases.collection(), "limit=1").accepting(partialList),
	}}}
}

// compressed answers begin at a size.
func compressed() []sequence {
	list := leases.collection()
	big := `"annotations":{"k":"` + strings.Repeat("v", 150000) + `"}`
	zip := func(s step) step { return s.with("Accept-Encoding", "gzip") }
	return []sequence{{"compressed answers", []step{
		zip(post(list, leases.object("a"))), zip(get(list)), zip(get(leases.item("a"))), zip(post(list, leases.object("b", big))),
		zip(get(list)), zip(get(leases.item("b"))), get(leases.item("b")), get(leases.item("b")).with("Accept-Encoding", "deflate, gzip;q=0.5"),
		zip(get(list)).accepting(table), zip(get(list)).asProto(), zip(watching(list, "watch=true")), zip(get(leases.item("missing"))),
		zip(get("/api")), zip(get("/apis/coordination.k8s.io/v1")), zip(get("/openapi/v2")), zip(get("/openapi/v3/api/v1")),
	}}}
}
