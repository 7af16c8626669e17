package main

const future = "resourceVersion=999999999999"

// versions are the tables of what resourceVersion means.
func versions(k kind) []sequence {
	list := k.collection()
	var matches []step
	for _, match := range []string{"", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan",
		"resourceVersionMatch=Nonsense", "resourceVersionMatch="} {
		for _, version := range []string{"", "resourceVersion=", "resourceVersion=0", "resourceVersion={{list.rv}}",
			"resourceVersion={{first a.rv}}", "resourceVersion=abc", "resourceVersion=-1"} {
			matches = append(matches, get(list, version, match), get(list, version, match, "limit=1"),
				get(k.item("a"), version, match))
		}
	}
	return []sequence{
		{"versions of lists", append(append(three(k), patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`), get(list)),
			matches...)},
		{"an older state", append(three(k), get(list), del(k.item("b")),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`), post(list, k.object("d")),
			get(list, "resourceVersion={{first list.rv}}", "resourceVersionMatch=Exact"),
			get(list, "resourceVersion={{first list.rv}}", "limit=2"),
			get(list, "resourceVersion={{first list.rv}}", "limit=2", "continue={{list.continue}}"),
			get(list, "limit=2", "continue={{list.continue}}"),
			get(list, "resourceVersion={{first list.rv}}"), get(list, "resourceVersion={{first list.rv}}",
				"resourceVersionMatch=NotOlderThan"),
			get(list, "resourceVersion={{first a.rv}}", "resourceVersionMatch=Exact", param("labelSelector", "app")))},
		{"a version of the future", []step{
			post(list, k.object("a")), get(k.item("a"), future), get(list, future), get(list, future, "resourceVersionMatch=Exact"),
			get(list, future, "resourceVersionMatch=NotOlderThan"),
			get(list, future, "limit=1"), watching(list, "watch=true", future),
			watching(list, "watch=true", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", future).toTheEnd(),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`),
		}},
		{"versions of objects", []step{
			post(list, k.object("a")), get(k.item("a"), "resourceVersion={{a.rv}}"), get(k.item("a"), "resourceVersion=0"),
			get(k.item("a"), "resourceVersion=1"), get(k.item("a"), "resourceVersion="),
			get(k.item("a"), "resourceVersion=abc"), get(k.item("a"), "resourceVersion=-5"),
			get(k.item("a"), "resourceVersion=1.5"), get(k.item("missing"), "resourceVersion=0"),
			get(k.item("missing"), "resourceVersion=abc"),
			watching(list, "watch=true", "resourceVersion=abc"), watching(k.watchItem("a"), "resourceVersion=abc"),
			watching(list, "watch=true", "resourceVersion=-1"),
			put(k.item("a"), k.body(k.valid, "a", `"resourceVersion":"abc"`)),
			put(k.item("a"), k.body(k.valid, "a", `"resourceVersion":"0"`)),
			put(k.item("a"), k.body(k.valid, "a", `"resourceVersion":""`)),
			post(list, k.body(k.valid, "b", `"resourceVersion":"5"`)), post(list, k.body(k.valid, "b", `"resourceVersion":"0"`)),
			post(list, k.body(k.valid, "b", `"resourceVersion":"abc"`)), get(list),
		}},
	}
}

// firstVersion is from before anything that is asked for: the peer's history
// doesn't reach so far.
func firstVersion() []sequence {
	list := leases.collection()
	return []sequence{{"the first version", []step{
		post(list, leases.object("a")), get(list, "resourceVersion=1"), get(leases.item("a"), "resourceVersion=1"),
		get(list, "resourceVersion=1", "resourceVersionMatch=NotOlderThan"), get(list, "resourceVersion=1", "resourceVersionMatch=Exact"),
		get(list, "resourceVersion=1", "limit=1"), watching(list, "watch=true", "resourceVersion=1"),
		watching(list, "watch=true", "resourceVersion=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan",
			"allowWatchBookmarks=true"),
	}}}
}

// watches are the ways to begin a watch.
func watches(k kind) []sequence {
	list := k.collection()
	change := []step{patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`), post(list, k.object("d")), del(k.item("b"))}
	var begin, wrong []step
	for _, from := range []string{"", "resourceVersion=", "resourceVersion=0", "resourceVersion={{first a.rv}}",
		"resourceVersion={{b.rv}}", "resourceVersion={{list.rv}}"} {
		for _, how := range []string{
			"", "allowWatchBookmarks=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
			"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
			"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		} {
			begin = append(begin, watching(list, "watch=true", from, how))
		}
	}
	for _, how := range []string{
		"resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "resourceVersionMatch=Nonsense",
		"sendInitialEvents=true", "sendInitialEvents=false", "sendInitialEvents=",
		"sendInitialEvents=true&resourceVersionMatch=Exact", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
		"timeoutSeconds=abc", "timeoutSeconds=1.5",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=abc",
		"sendInitialEvents=maybe&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=maybe", "shardSelector=x",
	} {
		wrong = append(wrong, watching(list, "watch=true", how), get(list, how), del(list, how, "dryRun=All"),
			get(list, how, "resourceVersion=0"), watching(list, "watch=true", how, "resourceVersion=0"))
	}
	begin = append(append(three(k), get(list)), begin...)
	return []sequence{
		{"ways to begin a watch", append(begin, change...)},
		{"wrong ways to begin a watch", append(append(three(k), wrong...), change...)},
		{"watches in other forms", append(append(three(k),
			watching(list, "watch=true").accepting(protobufMedia), watching(list, "watch=true").accepting(protobufStream),
			watching(list, "watch=true").accepting("application/json;stream=watch"),
			watching(list, "watch=true").accepting(table), watching(list, "watch=true", "includeObject=None").accepting(table),
			watching(list, "watch=true", "includeObject=Object").accepting(table),
			watching(list, "watch=true", "includeObject=All").accepting(table),
			watching(list, "watch=true", "resourceVersion={{b.rv}}").accepting(partial),
			watching(list, "watch=true").accepting(partialList), watching(list, "watch=true").accepting("application/yaml"),
			watching(list, "watch=true").accepting("application/cbor"), watching(list, "watch=true").accepting("text/html"),
			watching(list, "watch=true").accepting("*/*"),
			watching(list, "watch=true").accepting(protobufMedia+";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
			watching(list, "watch=true", "pretty=true"),
			watching(list, "watch=true",
				"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").accepting(table),
			watching(list, "watch=true",
				"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").accepting(partial),
			watching(list, "watch=true",
				"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").accepting(protobufStream),
			watching(list, "watch=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
				param("labelSelector", "app=web"))), change...)},
		{"a watch on all namespaces", append(append(three(k), watching(k.all(), "watch=true"), watching(k.all(), "watch=true",
			"resourceVersion=0", param("fieldSelector", "metadata.namespace=$NS")),
			watching(k.all(), "watch=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
				param("fieldSelector", "metadata.namespace=$NS")).accepting(protobufStream)), change...)},
	}
}

func watchEnds() []sequence {
	list := leases.collection()
	return []sequence{{"watches that end by themselves", []step{
		post(list, leases.object("a")), watching(list, "watch=true", "timeoutSeconds=2").toTheEnd(),
		watching(list, "watch=true", "timeoutSeconds=3", "allowWatchBookmarks=true").toTheEnd(),
		watching(list, "watch=true", "timeoutSeconds=1").accepting(protobufStream).toTheEnd(),
		watching(leases.watchItem("a"), "timeoutSeconds=1", "resourceVersion={{a.rv}}").toTheEnd(),
		watching(list, "watch=true", "timeoutSeconds=1").accepting(table).toTheEnd(),
		watching(list, "watch=true", "timeoutSeconds=0"), watching(list, "watch=true", "timeout=1s"),
		get(list, "timeoutSeconds=5"), get(list, "timeoutSeconds=abc"), get(list, "timeoutSeconds=0"), get(list, "timeout=1s"),
		get(list, "timeout=1x"),
	}}}
}
