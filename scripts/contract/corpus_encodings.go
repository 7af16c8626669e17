package main

// encodings of answers.
func encodings(k kind) []sequence {
	var all []step
	all = append(all, three(k)...)
	for _, accept := range []string{
		"application/json", "application/yaml", protobufMedia, "*/*", "application/*", "", "text/html", "text/html,*/*;q=0.1",
		"application/json;q=0.1,application/yaml;q=0.9", "application/cbor",
		"application/cbor,application/json", "nonsense", "application/json;pretty=1", "application/json;pretty=0",
		"application/yaml;pretty=1", "application/json;charset=utf-8", "application/xml,application/json",
		protobufMedia + ",application/json", table, table + ",application/json",
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Table;v=v2;g=meta.k8s.io",
		"application/json;as=Table;v=v1;g=nonsense", "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json", "application/json;as=Table",
		"application/yaml;as=Table;v=v1;g=meta.k8s.io", protobufMedia + ";as=Table;v=v1;g=meta.k8s.io", partial, partialList,
		"application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
		"application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		protobufMedia + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		protobufMedia + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/json;stream=watch", protobufStream, "application/json;profile=x", "application/json;g=x",
	} {
		all = append(all, get(k.item("a")).accepting(accept), get(k.collection()).accepting(accept),
			get(k.item("missing")).accepting(accept))
		if accept != "" {
			all = append(all, patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`).accepting(accept),
				del(k.item("missing")).accepting(accept),
				post(k.collection(), k.object("dry"), "dryRun=All").accepting(accept))
		}
	}
	for _, agent := range []string{"curl/8", "Wget/1", "Mozilla/5.0 x", "mozilla", "kubectl/v1"} {
		all = append(all, get(k.item("a")).with("User-Agent", agent), get(k.item("a"), "pretty=false").with("User-Agent", agent),
			get(k.item("missing")).with("User-Agent", agent), get(k.collection()).with("User-Agent", agent))
	}
	for _, pretty := range []string{"true", "false", "1", "0", "", "maybe"} {
		all = append(all, get(k.item("a"), "pretty="+pretty), get(k.item("missing"), "pretty="+pretty),
			get(k.collection(), "pretty="+pretty))
	}
	return []sequence{{"encodings of answers", all}}
}

// bodies in all encodings, and in none.
func bodies(k kind) []sequence {
	list := k.collection()
	yaml := "metadata:\n  name: y\n  labels:\n    a: b\n"
	var odd []step
	for _, body := range []string{
		"", " ", "{}", "[]", "null", "true", `"a"`, "{", `{"metadata":`, "nonsense", `{"metadata":{"name":"a"}}x`,
		`{"kind":"Nonsense","metadata":{"name":"a"}}`, `{"apiVersion":"v9","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"List","items":[]}`,
		`{"metadata":[]}`,
		`{"metadata":{"name":7}}`, `{"metadata":{"labels":{"a":1}}}`, `{"metadata":{"name":"a","creationTimestamp":"x"}}`,
		`{"KIND":"x","Metadata":{"Name":"a"}}`, "\x00\x01", "k8s\x00nonsense", "---\n", "a: [", "\xff",
		`{"kind":"` + k.kind + `"}`, `{"apiVersion":"` + k.apiVersion + `"}`,
		`{"apiVersion":"` + k.apiVersion + `","kind":"` + k.kind + `List","items":[]}`, `{"kind":7}`,
		`{"apiVersion":"a/b/c","kind":"x"}`,
	} {
		odd = append(odd, post(list, body), put(k.item("a"), body))
		for _, patchType := range []string{"json", "merge", "strategic", "apply"} {
			odd = append(odd, patch(patchType, k.item("a"), body, "fieldManager=m"))
		}
	}
	var types []step
	for _, media := range []string{"application/json", "application/yaml", "application/json; charset=utf-8", "text/plain",
		"application/x-www-form-urlencoded", protobufMedia, "nonsense", "*/*", "application/*",
		"application/json-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor", "application/cbor",
		"application/json;stream=watch", "application/merge-patch+json; charset=utf-8"} {
		types = append(types, post(list, k.object("t"), "dryRun=All").with("Content-Type", media),
			put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`)).with("Content-Type", media),
			do("PATCH", k.item("a")).with("Content-Type", media).send(`{}`),
			do("PATCH", k.item("missing")).with("Content-Type", media).send(`{}`),
			del(k.item("missing")).with("Content-Type", media).send(`{}`))
	}
	types = append(types, do("PATCH", k.item("a")).send(`{}`),
		post(list, yaml, "dryRun=All").with("Content-Type", "application/yaml"),
		patch("apply", k.item("a"), yaml, "fieldManager=m"),
		patch("apply", k.item("y"), "apiVersion: "+k.apiVersion+"\nkind: "+k.kind+"\n"+yaml, "fieldManager=m"))
	return []sequence{
		{"odd bodies", append([]step{post(list, k.object("a"))}, append(odd, get(k.item("a")))...)},
		{"media types of bodies", append([]step{post(list, k.object("a"))}, types...)},
		{"protobuf", []step{
			watching(list, "watch=true").accepting(protobufStream), post(list, k.object("a")).asProto(), get(k.item("a")).asProto(),
			get(list).asProto(),
			put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{a.rv}}"`)).asProto(),
			patch("merge", k.item("a"),
				`{"metadata":{"labels":{"x":"y"}}}`).asProto().send(`{"metadata":{"labels":{"x":"z"}}}`).jsonBody(),
			post(list, k.object("a")).asProto(), post(list, k.body(k.invalid, "b")).asProto(), get(k.item("missing")).asProto(),
			del(k.item("a")).send(`{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`).asProto(),
			del(k.item("a")).send(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,"preconditions":{"uid":"{{a.uid}}"}}`).asProto(),
			post(list, k.object("b")).asProto(), del(list).asProto(), get(list).asProto(),
		}},
		{"wrong types", []step{
			post(list, k.body(k.mistyped, "a")), post(list, k.body(k.mistyped, "a"), "fieldValidation=Strict"),
			post(list, k.object("a")), put(k.item("a"), k.body(k.mistyped, "a")),
			patch("merge", k.item("a"), "{"+k.mistyped[1:]+"}"), patch("strategic", k.item("a"), "{"+k.mistyped[1:]+"}"),
			patch("apply", k.item("a"), k.body(k.mistyped, "a"), "fieldManager=m"),
			patch("apply", k.item("new"), k.body(k.mistyped, "new"), "fieldManager=m"),
			post(list, `{"metadata":{"name":"a","generation":"x"}}`),
		}},
	}
}

// tables are columns for people.
func tables() []sequence {
	var all []step
	pod := `,"spec":{"nodeName":"$NS-node","containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}],"readinessGates":[{"conditionType":"example.com/x"}]}`
	all = append(all, post(pods.collection(), pods.body(pod, "p")), post(pods.collection(), pods.object("q")),
		patch("merge", pods.item("p")+"/status",
			`{"status":{"phase":"Running","podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}],"nominatedNodeName":"nn","containerStatuses":[`+
				`{"name":"c","ready":true,"restartCount":3,"image":"i","imageID":"x","state":{"running":{"startedAt":"2024-05-06T07:08:09Z"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"2024-05-06T07:08:09Z"}}},`+
				`{"name":"d","ready":false,"restartCount":0,"image":"i","imageID":"x","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`),
		post(leases.collection(), leases.object("l")), post(leases.collection(), leases.body("", "m")),
		post(endpoints.collection(), endpoints.body(endpoints.changed, "e")), post(endpoints.collection(), endpoints.body("", "f")),
		post(events.collection(), events.body(events.changed, "v")), post(coreEvents.collection(), coreEvents.object("w")))
	for _, k := range kinds {
		for _, include := range []string{"", "includeObject=None", "includeObject=Metadata", "includeObject=Object",
			"includeObject=Nonsense", "includeObject="} {
			all = append(all, get(k.collection(), include).accepting(table))
		}
		all = append(all, get(k.item("p")).accepting(table), get(k.item("l")).accepting(table),
			get(k.all(), param("fieldSelector", "metadata.namespace=$NS")).accepting(table),
			get(k.collection(), "includeObject=Nonsense"), get(k.collection(), "limit=1").accepting(table))
	}
	return []sequence{{"tables", all}}
}

// discoveryDocuments are compared as far as both servers have the same groups.
func discoveryDocuments() []sequence {
	aggregated := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	var all []step
	for _, path := range []string{"/api", "/apis"} {
		for _, accept := range []string{"", "application/json", "application/yaml", protobufMedia, aggregated,
			aggregated + ",application/json", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
			protobufMedia + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "text/html", "application/json;as=Table"} {
			all = append(all, get(path).accepting(accept))
		}
	}
	for _, path := range []string{"/api/v1", "/apis/coordination.k8s.io", "/apis/coordination.k8s.io/v1", "/apis/events.k8s.io",
		"/apis/events.k8s.io/v1"} {
		all = append(all, get(path), get(path).accepting("application/yaml"), get(path).accepting("text/html"),
			get(path).accepting(protobufMedia))
	}
	return []sequence{
		{"discovery", all},
		{"openapi", []step{
			get("/openapi/v3"), get("/openapi/v3/apis/coordination.k8s.io/v1"), get("/openapi/v3/apis/events.k8s.io/v1"),
			get("/openapi/v3/api/v1"), get("/openapi/v3/apis/nonsense/v1"), get("/openapi/v2"),
			get("/openapi/v3/apis/coordination.k8s.io/v1").accepting("application/com.github.proto-openapi.spec.v3@v1.0+protobuf").with("Range",
				"bytes=0-0"), get("/openapi/v3").accepting("text/html"), get("/openapi/v2").accepting("text/html"),
		}},
		{"version", []step{get("/version"), get("/version/")}},
	}
}
