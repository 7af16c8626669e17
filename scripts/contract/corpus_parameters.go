package main

import "strings"

// three are objects with labels to select by.
func three(k kind) []step {
	return []step{
		post(k.collection(), k.object("a", `"labels":{"app":"web","n":"1"}`)),
		post(k.collection(), k.object("b", `"labels":{"app":"db","n":"5"}`)),
		post(k.collection(), k.object("c")),
	}
}

func selectors(k kind) []sequence {
	byLabel, byField := three(k), three(k)
	for _, term := range []string{
		"", "app", "!app", "app=web", "app==web", "app!=web", "app in (web,db)", "app notin (web)", "app in (web", "n>3", "n<3",
		"n>x", "app=web,n=1",
		"=", "app=", "app=we b", "app in ()", "a=b=c", ",", "app,!n", "$$", "x/y/z=1", "app = web", "-=1",
	} {
		byLabel = append(byLabel, get(k.collection(), param("labelSelector", term)))
	}
	fields := []string{
		"", "metadata.name=a", "metadata.name==a", "metadata.name!=a", "metadata.name=a,metadata.name=b", "metadata.name=zz",
		"metadata.namespace=$NS", "metadata.namespace=other",
		"metadata.name", "=a", "metadata.name=", "nonsense=1", "metadata.labels.app=web", "metadata.name>a", "metadata.name=a b",
		"metadata.name=A/B",
		"spec.nodeName=", "spec.nodeName!=x", "spec.host=", "spec.restartPolicy=Always", "spec.schedulerName=default-scheduler",
		"spec.serviceAccountName=", "spec.hostNetwork=false",
		"status.phase=Pending", "status.phase!=Pending", "status.podIP=", "status.podIPs=", "status.nominatedNodeName=",
		"spec.unschedulable=false",
		"reason=Reason", "reason!=Reason", "type=Normal", "type=Warning", "reportingController=example.com/c",
		"reportingComponent=", "reportingComponent=example.com/c",
		"source=c", "source=example.com/c", "action=Act",
	}
	for _, about := range []string{"regarding", "involvedObject"} {
		for _, field := range []string{"kind=Pod", "namespace=$NS", "name=p", "uid=", "apiVersion=v1", "resourceVersion=",
			"fieldPath=", "nonsense="} {
			fields = append(fields, about+"."+field)
		}
	}
	for _, term := range fields {
		byField = append(byField, get(k.collection(), param("fieldSelector", term)))
	}
	return []sequence{
		{"label selectors", byLabel},
		{"field selectors", byField},
		{"selectors elsewhere", append(three(k),
			get(k.all(), param("labelSelector", "app"), param("fieldSelector", "metadata.namespace=$NS")),
			get(k.item("a"), param("labelSelector", "app=db")), get(k.item("a"), "fieldSelector=nonsense=1"),
			watching(k.collection(), "watch=true", "fieldSelector=nonsense=1"),
			watching(k.collection(), "watch=true", "labelSelector=%3D"),
			del(k.collection(), "fieldSelector=nonsense=1"), del(k.collection(), "labelSelector=%3D"), get(k.collection()))},
		{"watches with selectors", append([]step{
			watching(k.collection(), "watch=true", param("labelSelector", "app=web")),
			watching(k.collection(), "watch=true", param("labelSelector", "app!=web")),
			watching(k.collection(), "watch=true", param("fieldSelector", "metadata.name=b")),
			watching(k.collection(), "watch=true", param("fieldSelector", "metadata.name!=b"),
				param("labelSelector", "app")).accepting(protobufStream),
		}, append(three(k),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"app":"db"}}}`),
			patch("merge", k.item("b"), `{"metadata":{"labels":{"app":"web"}}}`),
			patch("merge", k.item("c"), `{"metadata":{"labels":{"app":"web"}}}`),
			patch("merge", k.item("b"), `{"metadata":{"annotations":{"x":"y"}}}`),
			patch("merge", k.item("a"), `{"metadata":{"labels":null}}`), del(k.item("b")), del(k.item("a")))...)},
	}
}

func paging(k kind) []sequence {
	list := k.collection()
	return []sequence{
		{"pages", append(three(k),
			get(list, "limit=1"), get(list, "limit=1", "continue={{list.continue}}"), post(list, k.object("bb")), del(k.item("c")),
			get(list, "limit=1", "continue={{list.continue}}"), get(list, "limit=1", "continue={{list.continue}}"),
			get(list, "limit=2"),
			get(list, "continue={{list.continue}}"), get(list, "limit=3"), get(list, "limit=300"),
			get(list, "limit=1", param("labelSelector", "app")),
			get(list, "limit=1", param("labelSelector", "app"), "continue={{list.continue}}"),
			get(list, "limit=1", param("fieldSelector", "metadata.name!=a")), get(list, "limit=1").accepting(table),
			get(list, "limit=1").accepting(partialList),
			get(list, "limit=2").accepting(protobufMedia), get(list, "limit=1", "continue={{list.continue}}",
				"resourceVersion=0"))},
		{"bad pages", append(three(k),
			get(list, "limit=abc"), get(list, "limit=-1"), get(list, "limit=0"), get(list, "limit="), get(list, "limit=1.5"),
			get(list, "limit=99999999999999999999"),
			get(list, "continue=nonsense"), get(list, "continue=e30"), get(list, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
			get(list, "limit=1", "continue=%%%"),
			get(list, "limit=1"), get(list, "continue={{list.continue}}", "resourceVersion={{a.rv}}"),
			get(list, "continue={{list.continue}}", "resourceVersion=0"),
			get(list, "continue={{list.continue}}", "resourceVersionMatch=Exact", "resourceVersion={{a.rv}}"),
			get(list, "continue={{list.continue}}", "resourceVersionMatch=NotOlderThan"), watching(list, "watch=true", "limit=1"),
			watching(list, "watch=true", "continue={{list.continue}}"), get(list, "limit=1", "resourceVersion=0"),
			get(list, "limit=1", "resourceVersion={{list.rv}}"),
			get(list, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9"),
			get(list, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4veCJ9"),
			get(list, "continue=eyJ2IjoidjIiLCJydiI6MTAsInN0YXJ0IjoiYSJ9"),
			get(list, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0"))},
	}
}

// writeOptions are parameters of writes, right and wrong.
func writeOptions(k kind) []sequence {
	var all []step
	for _, option := range []string{
		"dryRun=", "dryRun=None", "dryRun=All&dryRun=Some", "dryRun=All&dryRun=All", "fieldManager=" + strings.Repeat("m", 128),
		"fieldManager=" + strings.Repeat("m", 129),
		"fieldManager=%01", "fieldManager=%C3%A9", "fieldManager=", "fieldValidation=Nonsense", "fieldValidation=",
		"fieldValidation=strict", "force=true", "force=maybe",
		"timeout=5s", "timeout=0s", "timeout=x", "timeout=1h", "timeout=-1s", "pretty=true", "pretty=false", "pretty=1",
		"pretty=maybe", "nonsense=1",
		"fieldManager=" + strings.Repeat("m", 129) + "&dryRun=x&fieldValidation=y",
	} {
		all = append(all,
			post(k.collection(), k.object("a"), option), put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`), option),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"p":"q"}}}`, option), get(k.item("a"), option),
			get(k.collection(), option), del(k.item("a"), option))
	}
	return []sequence{{"options of writes", all}}
}

func fieldValidation(k kind) []sequence {
	var all []sequence
	duplicate := `{"metadata":{"name":"a","name":"a"}` + k.valid + k.valid + `}`
	for _, level := range []string{"", "fieldValidation=Ignore", "fieldValidation=Warn", "fieldValidation=Strict"} {
		all = append(all, sequence{"unknown fields, " + level, []step{
			post(k.collection(), k.body(k.unknown, "a"), level), post(k.collection(), duplicate, level),
			post(k.collection(), k.body(k.unknown, "a"), level).with("Content-Type", "application/yaml"),
			post(k.collection(), k.object("a")),
			put(k.item("a"), k.body(k.unknown, "a", `"resourceVersion":"{{a.rv}}"`), level), put(k.item("a"), duplicate, level),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"l":"1"},"nonsense":1},"more":1}`, level),
			patch("merge", k.item("a"), `{"metadata":{"labels":{"l":"2"},"labels":{"l":"3"}}}`, level),
			patch("strategic", k.item("a"), `{"metadata":{"labels":{"l":"4"},"nonsense":1},"more":1}`, level),
			patch("json", k.item("a"), `[{"op":"add","path":"/more","value":1},{"op":"add","path":"/metadata/nonsense","value":1}]`,
				level),
			patch("json", k.item("a"), `[{"op":"add","path":"/metadata/labels","value":{"x":"y"},"extra":1}]`, level),
			patch("apply", k.item("a"), k.body(k.unknown, "a"), level, "fieldManager=m", "force=true"),
			patch("apply", k.item("a"), duplicate, level, "fieldManager=m", "force=true"),
			patch("apply", k.item("a"),
				`{"apiVersion":"`+k.apiVersion+`","kind":"`+k.kind+`","metadata":{"name":"a","labels":{"b":"1"},"labels":{"b":"2"}}}`,
				level, "fieldManager=m"),
			get(k.item("a")),
		}})
	}
	return all
}

func dryRuns(k kind) []sequence {
	dry := "dryRun=All"
	return []sequence{{"dry runs", []step{
		watching(k.collection(), "watch=true"),
		post(k.collection(), k.object("a"), dry), get(k.item("a")), post(k.collection(), k.object("a")),
		post(k.collection(), k.object("a"), dry),
		post(k.collection(), k.body(k.invalid, "b"), dry), post(k.collection(), `{"metadata":{"generateName":"g-"}`+k.valid+`}`,
			dry),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{a.rv}}"`), dry), get(k.item("a")),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"1"`), dry),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`, dry),
		patch("apply", k.item("n"), k.object("n"), dry, "fieldManager=m"), get(k.item("n")),
		del(k.item("a"), dry), del(k.item("a")).send(`{"dryRun":["All"]}`), del(k.item("a")).send(`{"dryRun":["Some"]}`),
		get(k.item("a")),
		del(k.collection(), dry), get(k.collection()), del(k.item("missing"), dry),
		del(k.item("a"), dry, "propagationPolicy=Foreground"), get(k.item("a")),
	}}}
}

// managers are who owns which field.
func managers(k kind) []sequence {
	return []sequence{{"managers of fields", []step{
		post(k.collection(), k.object("a"), "fieldManager=one"),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{a.rv}}"`), "fieldManager=two"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`, "fieldManager=three"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y","z":"1"}}}`).with("User-Agent", "four/5 (x)"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"v"}}}`).with("User-Agent", "no-slash"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"w"}}}`).with("User-Agent", "é/1"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"u"}}}`).with("User-Agent", strings.Repeat("long", 50)+"/1"),
		patch("merge", k.item("a"), `{"metadata":{"managedFields":[{}]}}`),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"t"}}}`, "fieldManager=five"),
		patch("json", k.item("a"), `[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"bad"}]}]`),
		patch("merge", k.item("a"), `{"metadata":{"managedFields":[]}}`),
		patch("merge", k.item("a"), `{"metadata":{"managedFields":null}}`), get(k.item("a")),
	}}}
}
