package main

import (
	"fmt"
	"strings"
)

// members is a JSON object's members with some replaced: key=value overrides.
func members(base map[string]string, order []string, change ...string) string {
	values := map[string]string{}
	for key, value := range base {
		values[key] = value
	}
	for i := 0; i < len(change); i += 2 {
		if _, known := values[change[i]]; !known {
			order = append(order[:len(order):len(order)], change[i])
		}
		values[change[i]] = change[i+1]
	}
	var out strings.Builder
	for _, key := range order {
		if values[key] != "" {
			fmt.Fprintf(&out, ",%q:%s", key, values[key])
		}
	}
	return out.String()
}

// event is a new event with some members changed; an empty value leaves one out.
func event(change ...string) string {
	return members(map[string]string{
		"eventTime": `"2024-05-06T07:08:09.123456Z"`, "action": `"Act"`, "reason": `"Reason"`, "note": `"note"`, "type": `"Normal"`,
		"reportingController": `"example.com/c"`, "reportingInstance": `"i"`,
		"regarding": `{"kind":"Pod","name":"p","namespace":"$NS"}`,
	}, []string{"eventTime", "action", "reason", "note", "type", "reportingController", "reportingInstance", "regarding"},
		change...)
}

func text(n int) string { return `"` + strings.Repeat("t", n) + `"` }

var eventChanges = [][]string{
	{"eventTime", ""}, {"eventTime", "null"}, {"eventTime", `"2024-05-06T07:08:09Z"`}, {"eventTime", `"2024-05-06T07:08:09.123Z"`},
	{"eventTime", `"2024-05-06T07:08:09.123456789Z"`}, {"eventTime", `"2024-05-06T07:08:09.123456+02:00"`},
	{"eventTime", `"nonsense"`},
	{"action", ""}, {"action", text(128)}, {"action", text(129)}, {"reason", ""}, {"reason", text(128)}, {"reason", text(129)},
	{"reason", `"` + strings.Repeat("é", 65) + `"`}, {"note", text(1024)}, {"note", text(1025)}, {"note", `""`},
	{"type", ""}, {"type", `"Warning"`}, {"type", `"Error"`}, {"reportingController", ""},
	{"reportingController", `"not qualified!"`}, {"reportingController", text(129)}, {"reportingInstance", ""},
	{"reportingInstance", text(129)},
	{"regarding", ""}, {"regarding", `{"kind":"Pod"}`}, {"regarding", `{"namespace":"other"}`},
	{"regarding", `{"kind":"Node","name":"n"}`}, {"related", `{"kind":"Pod","name":"q"}`},
	{"series", `{"count":1,"lastObservedTime":"2024-05-06T07:08:09.123456Z"}`},
	{"series", `{"count":2}`}, {"series", `{"count":2,"lastObservedTime":"2024-05-06T07:08:09.123456Z"}`}, {"series", `{}`},
	{"deprecatedCount", "1"}, {"deprecatedCount", "0"}, {"deprecatedFirstTimestamp", `"2024-05-06T07:08:09Z"`},
	{"deprecatedLastTimestamp", `"2024-05-06T07:08:09Z"`},
	{"deprecatedSource", `{"component":"c"}`}, {"eventTime", `"0001-01-01T00:00:00.000000Z"`},
}

func eventSchema() []sequence {
	create, change := []step{}, []step{post(events.collection(), events.body(event(), "a"))}
	for i, c := range eventChanges {
		create = append(create, post(events.collection(), events.body(event(c...), fmt.Sprintf("e%d", i))))
		change = append(change, put(events.item("a"), events.body(event(c...), "a")),
			put(coreEvents.item(fmt.Sprintf("c%d", i)), coreEvents.body(coreEvent(c...), fmt.Sprintf("c%d", i))))
	}
	about := func(namespace string) string { return `,"involvedObject":{"namespace":"` + namespace + `"}` }
	core := coreEvents.collection()
	return []sequence{
		{"new events", create},
		{"changes of events", change},
		{"events through both groups", []step{
			watching(events.collection(), "watch=true"), watching(core, "watch=true"),
			post(events.collection(), events.object("new")), post(core, coreEvents.object("old")), get(coreEvents.item("new")),
			get(events.item("old")),
			get(core), get(events.collection()), put(coreEvents.item("new"), coreEvents.body(coreEvents.changed, "new")),
			patch("merge", events.item("old"), `{"note":"changed"}`),
			patch("merge", events.item("old"), `{"metadata":{"labels":{"a":"b"}}}`),
			patch("merge", coreEvents.item("old"), `{"message":"changed","count":5}`),
			patch("merge", events.item("new"), `{"series":{"count":3,"lastObservedTime":"2024-05-06T07:08:09.123456Z"}}`),
			patch("apply", events.item("new"), events.body("", "new", `"labels":{"x":"y"}`), "fieldManager=m"),
			patch("apply", coreEvents.item("new"), coreEvents.body("", "new", `"labels":{"x":"z"}`), "fieldManager=m"),
			patch("apply", coreEvents.item("new"), coreEvents.body("", "new", `"labels":{"x":"z"}`), "fieldManager=n"),
			del(coreEvents.item("new")), del(events.item("old")), get(core),
		}},
		{"core events", []step{
			post(core, coreEvents.body(about("$NS"), "a")), post(core, coreEvents.body(about("other"), "b")),
			post(core, coreEvents.body(about(""), "c")), post(core, coreEvents.body("", "d")),
			post(core, coreEvents.body(about("$NS")+`,"message":`+text(2000), "e")),
			post(core, coreEvents.body(about("$NS")+`,"type":"Odd","reason":`+text(200), "f")),
			post(core, coreEvents.body(about("$NS")+`,"series":{"count":1}`, "g")),
			post(core, coreEvents.body(about("$NS")+`,"count":-1`, "h")),
			post(core, coreEvents.body(about("$NS")+`,"eventTime":"2024-05-06T07:08:09.123456Z"`, "i")),
			get(core, param("fieldSelector", "involvedObject.namespace=$NS")), get(core, param("fieldSelector", "source=")),
			get(core).accepting(table), get(events.collection()).accepting(table),
			post(coreEvents.collection(),
				coreEvents.body(about("$NS")+`,"firstTimestamp":"2024-05-06T07:08:09.5Z","lastTimestamp":null`, "j")),
		}},
	}
}

// coreEvent is an event with eventTime set, through the core group.
func coreEvent(change ...string) string {
	names := map[string]string{"note": "message", "regarding": "involvedObject", "reportingController": "reportingComponent",
		"deprecatedCount": "count", "deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp",
		"deprecatedSource": "source"}
	renamed := make([]string, len(change))
	copy(renamed, change)
	if len(renamed) > 0 && names[renamed[0]] != "" {
		renamed[0] = names[renamed[0]]
	}
	return members(map[string]string{
		"eventTime": `"2024-05-06T07:08:09.123456Z"`, "action": `"Act"`, "reason": `"Reason"`, "message": `"note"`,
		"type": `"Normal"`, "reportingComponent": `"example.com/c"`, "reportingInstance": `"i"`,
		"involvedObject": `{"kind":"Pod","name":"p","namespace":"$NS"}`,
	}, []string{"eventTime", "action", "reason", "message", "type", "reportingComponent", "reportingInstance", "involvedObject"},
		renamed...)
}

func endpointsSchema() []sequence {
	list := endpoints.collection()
	var all []step
	for i, subset := range []string{
		`{}`, `{"addresses":[]}`, `{"addresses":[{}]}`, `{"ports":[{"port":80}]}`, `{"notReadyAddresses":[{"ip":"10.0.0.1"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"notReadyAddresses":[{"ip":"10.0.0.1"}]}`,
		`{"addresses":[{"ip":"10.0.0.1","hostname":"h","nodeName":"n","targetRef":{"kind":"Pod","name":"p","namespace":"x","uid":"u","resourceVersion":"5","fieldPath":"f","apiVersion":"v1"}}]}`,
		`{"addresses":[{"ip":"10.0.0.1","hostname":"UP"}]}`, `{"addresses":[{"ip":"10.0.0.1","nodeName":"UP"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80},{"port":81}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"name":"a","port":80},{"name":"a","port":81}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"name":"UP","port":80}]}`, `{"addresses":[{"ip":"10.0.0.1"}],"ports":[{}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":65536}]}`, `{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":-1}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":"80"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80,"protocol":"SCTP"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80,"protocol":"tcp"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80,"appProtocol":"kubernetes.io/h2c"}]}`,
		`{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80,"appProtocol":"a b"}]}`,
	} {
		all = append(all, post(list, endpoints.body(`,"subsets":[`+subset+`]`, fmt.Sprintf("s%d", i))))
	}
	for i, ip := range []string{"127.0.0.1", "127.9.9.9", "::1", "169.254.1.1", "fe80::1", "224.0.0.5", "ff02::1", "0.0.0.0", "::",
		"010.0.0.1", "10.0.0.01", "230.0.0.1", "255.255.255.255", "2001:db8::1", "2001:DB8::1", "::ffff:10.0.0.1", "10.0.0",
		"10.0.0.256", "nonsense", "", "10.0.0.1 "} {
		all = append(all, post(list, endpoints.body(fmt.Sprintf(`,"subsets":[{"addresses":[{"ip":%q}]}]`, ip), fmt.Sprintf("i%d",
			i))))
	}
	return []sequence{
		{"endpoints", append(all, get(list), get(list).accepting(table))},
		{"changes of endpoints", []step{
			post(list, endpoints.body("", "a")), post(list, endpoints.body(`,"subsets":[]`, "b")),
			post(list, endpoints.body(`,"subsets":null`, "c")), put(endpoints.item("a"), endpoints.body(endpoints.valid, "a")),
			put(endpoints.item("a"), endpoints.body(endpoints.invalid, "a")),
			put(endpoints.item("a"), endpoints.body("", "a")),
			patch("strategic", endpoints.item("a"), "{"+endpoints.changed[1:]+"}"),
			patch("strategic", endpoints.item("a"), "{"+endpoints.valid[1:]+"}"),
			patch("json", endpoints.item("a"), `[{"op":"add","path":"/subsets/0/addresses/-","value":{"ip":"10.9.9.9"}}]`),
			patch("json", endpoints.item("a"), `[{"op":"remove","path":"/subsets/7"}]`), get(endpoints.item("a")),
			patch("merge", endpoints.item("a"),
				`{"metadata":{"labels":{"endpoints.kubernetes.io/managed-by":"x"},"annotations":{"endpoints.kubernetes.io/over-capacity":"truncated"}}}`),
		}},
	}
}

func leaseSchema() []sequence {
	list := leases.collection()
	var all []step
	for i, spec := range []string{
		`{}`, `null`, `{"holderIdentity":""}`, `{"holderIdentity":null}`, `{"leaseDurationSeconds":1}`,
		`{"leaseDurationSeconds":0}`, `{"leaseDurationSeconds":-1}`, `{"leaseDurationSeconds":2147483648}`,
		`{"leaseDurationSeconds":1.5}`, `{"leaseTransitions":0}`, `{"leaseTransitions":-1}`,
		`{"acquireTime":"2024-05-06T07:08:09.123456Z"}`, `{"acquireTime":"2024-05-06T07:08:09Z"}`,
		`{"renewTime":"2024-05-06T07:08:09.123456789Z"}`, `{"renewTime":"2024-05-06T07:08:09.000000+02:00"}`,
		`{"renewTime":"nonsense"}`, `{"renewTime":null}`, `{"renewTime":7}`,
		`{"strategy":"OldestEmulationVersion"}`, `{"strategy":"nonsense nonsense"}`, `{"preferredHolder":"x"}`,
		`{"strategy":"a","preferredHolder":"x","holderIdentity":"y"}`, `"text"`, `[]`,
	} {
		name := fmt.Sprintf("l%d", i)
		all = append(all, post(list, leases.body(`,"spec":`+spec, name)), patch("merge", leases.item("base"), `{"spec":`+spec+`}`),
			patch("apply", leases.item(name+"x"), leases.body(`,"spec":`+spec, name+"x"), "fieldManager=m"))
	}
	return []sequence{
		{"leases", append([]step{post(list, leases.object("base"))}, append(all, get(list), get(list).accepting(table))...)},
		{"leader election", []step{
			get(leases.item("lock")), post(list,
				leases.body(`,"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2024-05-06T07:08:09.000000Z","renewTime":"2024-05-06T07:08:09.000000Z","leaseTransitions":0}`,
					"lock")),
			put(leases.item("lock"), leases.body(leases.changed, "lock")),
			put(leases.item("lock"), leases.body(leases.changed, "lock", `"resourceVersion":"{{lock.rv}}"`)),
			put(leases.item("lock"), leases.body(leases.valid, "lock", `"resourceVersion":"{{first lock.rv}}"`)),
			put(leases.item("lock"), leases.body(leases.valid, "lock", `"resourceVersion":"{{lock.rv}}"`)).asProto(),
			put(leases.item("lock"), leases.body(leases.valid, "lock", `"resourceVersion":"{{lock.rv}}"`)), get(leases.item("lock")),
		}},
	}
}
