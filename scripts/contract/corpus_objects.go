package main

import "strings"

// metadata is what every object has.
func metadata(k kind) []sequence {
	list := k.collection()
	uid := `"uid":"11111111-2222-3333-4444-555555555555"`
	var wrong []step
	for _, meta := range []string{
		`"labels":{"a b":"c"}`, `"labels":{"` + strings.Repeat("l", 64) + `":"c"}`,
		`"labels":{"a":"` + strings.Repeat("v", 64) + `"}`, `"labels":{"x/y/z":"c"}`, `"labels":{"":"c"}`, `"labels":{"a":"b c"}`,
		`"labels":{"UP.er/a":"b"}`,
		`"annotations":{"a b":"c"}`, `"annotations":{"UP/x":"any thing"}`, `"finalizers":["nonsense"]`,
		`"finalizers":["example.com/x"]`, `"finalizers":["a b/c"]`, `"finalizers":["orphan","foregroundDeletion"]`,
		`"finalizers":[""]`,
		`"ownerReferences":[{}]`, `"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"p","uid":"u"}]`,
		`"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}]`,
		`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"p","uid":"u","controller":true},{"apiVersion":"example.com/v1","kind":"Thing","name":"q","uid":"w","controller":true}]`,
		`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"p","uid":"u"},{"apiVersion":"example.com/v1","kind":"Thing","name":"q","uid":"u"}]`,
		`"managedFields":[{"manager":"x"}]`,
		`"managedFields":[{"manager":"x","operation":"Update","apiVersion":"` + k.apiVersion + `","time":"2024-05-06T07:08:09Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{}}}]`,
		`"generation":-1`, `"deletionTimestamp":"2024-05-06T07:08:09Z"`, `"deletionGracePeriodSeconds":5`, `"selfLink":"/x"`,
		`"clusterName":"x"`,
	} {
		wrong = append(wrong, post(list, k.object("w", meta)), patch("merge", k.item("a"), "{\"metadata\":{"+meta+"}}"),
			del(k.item("w")), patch("merge", k.item("w"), `{"metadata":{"finalizers":null}}`))
	}
	return []sequence{
		{"server-owned metadata", []step{
			post(list, k.object("a", uid, `"creationTimestamp":"2001-01-01T00:00:00Z"`, `"generation":7`, `"selfLink":"/x"`,
				`"deletionTimestamp":"2001-01-01T00:00:00Z"`, `"deletionGracePeriodSeconds":3`)), get(k.item("a")),
			put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`, `"creationTimestamp":"2001-01-01T00:00:00Z"`,
				`"generation":9`, `"deletionTimestamp":"2001-01-01T00:00:00Z"`)),
			put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`, uid)),
			put(k.item("a"), k.object("a", `"resourceVersion":"{{a.rv}}"`, `"uid":"{{a.uid}}"`)),
			patch("merge", k.item("a"), `{"metadata":{`+uid+`}}`),
			patch("merge", k.item("a"), `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z"}}`),
			patch("merge", k.item("a"), `{"metadata":{"generation":8}}`),
			patch("merge", k.item("a"), `{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}`),
			patch("merge", k.item("a"), `{"metadata":{"creationTimestamp":null,"uid":null}}`),
			patch("merge", k.item("a"), `{"metadata":{"generateName":"z"}}`), get(k.item("a")),
		}},
		{"generated names", []step{
			post(list, `{"metadata":{"generateName":"g-"}`+k.valid+`}`), get(k.item("{{generated.name}}")),
			post(list, `{"metadata":{"generateName":"`+strings.Repeat("g", 70)+`"}`+k.valid+`}`),
			post(list, `{"metadata":{"generateName":"UP"}`+k.valid+`}`),
			post(list, `{"metadata":{"generateName":"g-","name":"n"}`+k.valid+`}`),
			post(list, `{"metadata":{"generateName":"g/"}`+k.valid+`}`), post(list, `{"metadata":{"generateName":""}`+k.valid+`}`),
			del(k.item("{{generated.name}}")),
			patch("apply", k.item("h"), `{"apiVersion":"`+k.apiVersion+`","kind":"`+k.kind+`","metadata":{"generateName":"h-"}}`,
				"fieldManager=m"),
		}},
		{"right and wrong metadata", append([]step{post(list, k.object("a"))}, append(wrong, get(k.item("a")))...)},
	}
}

// conflicts are two clients who want different things.
func conflicts(k kind) []sequence {
	list := k.collection()
	return []sequence{{"conflicts", []step{
		post(list, k.object("a")), patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"y"}}}`),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"{{first a.rv}}"`)), put(k.item("a"), k.body(k.changed, "a")),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":""`)),
		put(k.item("a"), k.body(k.changed, "a", `"resourceVersion":"999999999"`)),
		patch("merge", k.item("a"), `{"metadata":{"resourceVersion":"{{first a.rv}}","labels":{"x":"z"}}}`),
		patch("merge", k.item("a"), `{"metadata":{"resourceVersion":"{{a.rv}}","labels":{"x":"z"}}}`),
		patch("merge", k.item("a"), `{"metadata":{"resourceVersion":""}}`),
		patch("merge", k.item("a"), `{"metadata":{"resourceVersion":"abc"}}`),
		patch("strategic", k.item("a"), `{"metadata":{"resourceVersion":"{{first a.rv}}","labels":{"x":"v"}}}`),
		patch("json", k.item("a"), `[{"op":"replace","path":"/metadata/resourceVersion","value":"{{first a.rv}}"}]`),
		patch("json", k.item("a"),
			`[{"op":"test","path":"/metadata/resourceVersion","value":"{{a.rv}}"},{"op":"add","path":"/metadata/labels/q","value":"r"}]`),
		patch("apply", k.item("a"), k.object("a", `"resourceVersion":"{{first a.rv}}"`), "fieldManager=m", "force=true"),
		patch("apply", k.item("a"), k.object("a", `"uid":"11111111-2222-3333-4444-555555555555"`), "fieldManager=m", "force=true"),
		patch("merge", k.item("a"), `{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}`),
		put(k.item("a"), k.body(k.changed, "a", `"uid":"11111111-2222-3333-4444-555555555555"`)),
		del(k.item("a")).send(`{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}`),
		del(k.item("a")).send(`{"preconditions":{"resourceVersion":"{{first a.rv}}"}}`),
		del(k.item("a")).send(`{"preconditions":{"uid":"{{a.uid}}","resourceVersion":"1"}}`),
		del(k.collection()).send(`{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}`), get(k.item("a")),
		del(k.item("a")).send(`{"preconditions":{"uid":"{{a.uid}}","resourceVersion":"{{a.rv}}"}}`), get(k.item("a")),
	}}}
}

// patches of the types that don't need a manager.
func patches(k kind) []sequence {
	var jsons []step
	for _, body := range []string{
		`[]`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`,
		`[{"op":"add","path":"/metadata/labels/c","value":"d"}]`, `[{"op":"remove","path":"/metadata/labels/c"}]`,
		`[{"op":"remove","path":"/metadata/labels/c"}]`,
		`[{"op":"replace","path":"/metadata/labels/zz","value":"d"}]`, `[{"op":"test","path":"/metadata/name","value":"b"}]`,
		`[{"op":"test","path":"/metadata/name","value":"a"}]`,
		`[{"op":"move","from":"/metadata/labels/a","path":"/metadata/labels/e"}]`,
		`[{"op":"copy","from":"/metadata/labels/e","path":"/metadata/labels/f"}]`, `[{"op":"nonsense","path":"/x"}]`,
		`[{"op":"add"}]`, `[{"path":"/metadata"}]`, `[{"op":"remove","path":"/metadata/name"}]`,
		`[{"op":"remove","path":"/metadata"}]`,
		`[{"op":"replace","path":"","value":{}}]`, `[{"op":"add","path":"metadata","value":1}]`,
		`[{"op":"replace","path":"/kind","value":"X"}]`, `[{"op":"add","path":"/metadata/annotations/x","value":"y"}]`,
		`[{"op":"test","path":"/nonsense","value":null}]`,
		`[{"op":"replace","path":"/metadata/labels","value":"text"}]`, `[{"op":"add","path":"/metadata/labels/n","value":5}]`,
		`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/f"}]`, `{"op":"add"}`,
	} {
		jsons = append(jsons, patch("json", k.item("a"), body))
	}
	var merges []step
	for _, body := range []string{
		`{}`, `{"metadata":{"labels":{"a":"b","c":"d"}}}`, `{"metadata":{"labels":{"a":null}}}`, `{"metadata":{"labels":null}}`,
		`{"metadata":null}`, `{"metadata":{"annotations":{"x":"y"}}}`, `{"metadata":{"labels":"text"}}`,
		`{"metadata":{"labels":{"a":1}}}`,
		`{"metadata":{"finalizers":["example.com/a"]}}`, `{"metadata":{"finalizers":["example.com/b"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`, `{"metadata":{"finalizers":[]}}`,
		`{"metadata":{"$patch":"replace","labels":{"only":"me"},"name":"a"}}`,
		`{"$patch":"delete"}`, `{"$patch":"nonsense"}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"p","uid":"u1"}]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"q","uid":"u2"}]}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u1"}]}}`, `{"metadata":{"ownerReferences":null}}`,
		`{"metadata":{"$retainKeys":["name"]}}`, "{" + k.changed[1:] + "}", "{" + k.invalid[1:] + "}", "{" + k.mistyped[1:] + "}",
	} {
		merges = append(merges, patch("merge", k.item("a"), body), patch("strategic", k.item("a"), body))
	}
	create := post(k.collection(), k.object("a"))
	return []sequence{
		{"json patches", append([]step{create}, append(jsons, get(k.item("a")))...)},
		{"merge and strategic patches", append([]step{create}, append(merges, get(k.item("a")))...)},
	}
}

// applies are server-side.
func applies(k kind) []sequence {
	object := func(meta string) string { return k.body("", "a", meta) }
	at := func(body string, query ...string) step { return patch("apply", k.item("a"), body, query...) }
	return []sequence{{"server-side apply", []step{
		watching(k.collection(), "watch=true"), at(k.object("a")), at(k.object("a"), "fieldManager=one"),
		at(k.object("a"), "fieldManager=one"), get(k.item("a")), at(k.body(k.changed, "a"), "fieldManager=two"),
		at(k.body(k.changed, "a"), "fieldManager=two", "force=false"),
		at(k.body(k.changed, "a"), "fieldManager=two", "force=true"),
		at(object(`"labels":{"x":"1","y":"2"}`), "fieldManager=three"), at(object(`"labels":{"x":"1"}`), "fieldManager=three"),
		at(object(`"labels":{"x":"2"}`), "fieldManager=four"), at(object(`"labels":{"x":"1"}`), "fieldManager=four"),
		at(object(`"annotations":{"x":"1"}`), "fieldManager=three"), at(object(`"managedFields":[]`), "fieldManager=five"),
		at(object(`"managedFields":[{"manager":"x"}]`), "fieldManager=five"), at(`{"metadata":{"name":"a"}}`, "fieldManager=five"),
		at(`{"kind":"`+k.kind+`"}`, "fieldManager=five"),
		at(`{"apiVersion":"`+k.apiVersion+`","kind":"Other"}`, "fieldManager=five"),
		at(`{"apiVersion":"v9","kind":"`+k.kind+`"}`, "fieldManager=five"), at(k.body("", "b"), "fieldManager=five"),
		at(object(`"namespace":"other"`), "fieldManager=five"), at(`[]`, "fieldManager=five"), at(``, "fieldManager=five"),
		at("a: [", "fieldManager=five"), at(`{"apiVersion":"`+k.apiVersion+`","kind":"`+k.kind+`"}`, "fieldManager=five"),
		at(object(`"labels":{"z":null}`), "fieldManager=six"), at(object(`"labels":{"z":""}`), "fieldManager=six"),
		at(object(`"labels":[]`), "fieldManager=six"),
		at(k.body(k.invalid, "a"), "fieldManager=six", "force=true"), at(k.body(k.mistyped, "a"), "fieldManager=six", "force=true"),
		patch("merge", k.item("a"), `{"metadata":{"labels":{"x":"changed"}}}`),
		at(object(`"labels":{"x":"1"}`), "fieldManager=three"), at(object(`"labels":{"x":"1"}`), "fieldManager=three&force=1"),
		at(object(`"finalizers":["example.com/a"]`), "fieldManager=seven"),
		at(object(`"finalizers":["example.com/b"]`), "fieldManager=eight"), at(object(`"labels":{}`), "fieldManager=seven"),
		at(object(`"labels":{}`), "fieldManager=eight"),
		at(object(`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"n","uid":"u"},{"apiVersion":"example.com/v1","kind":"Thing","name":"m","uid":"u"}]`),
			"fieldManager=nine"),
		patch("apply", k.item("n"), k.body("", "n"), "fieldManager=one"),
		patch("apply", k.item("n"), k.body(k.valid, "n", `"resourceVersion":"77"`), "fieldManager=one"), get(k.collection()),
		get(k.item("a")),
	}}}
}
