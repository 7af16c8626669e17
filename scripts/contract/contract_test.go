package main

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func reply(status int, body string) *answer {
	return &answer{status: status, proto: "HTTP/2.0", header: http.Header{"Content-Type": {"application/json"}}, body: []byte(body)}
}

// TestNormalHidesNature: two servers that behave alike say the same, whatever
// their uids, times, versions and namespaces are.
func TestNormalHidesNature(t *testing.T) {
	now := time.Now().UTC().Format(time.RFC3339)
	say := func(m *memory, uid, version string) string {
		return m.normal(reply(200, fmt.Sprintf(`{"kind":"Lease","metadata":{"name":"a","namespace":%q,"uid":%q,"resourceVersion":%q,
			"creationTimestamp":%q},"spec":{"renewTime":"2024-05-06T07:08:09.123456Z"}}`, m.namespace, uid, version, now)))
	}
	a, b := newMemory("ns1a"), newMemory("ns1b")
	one := say(a, "11111111-2222-3333-4444-555555555555", "17")
	other := say(b, "66666666-2222-3333-4444-555555555555", "4000")
	if one != other {
		t.Errorf("alike, but\n%s", strings.Join(diff(one, other), "\n"))
	}
	if got := b.expand("/$NS/{{a.uid}}?rv={{a.rv}}&x={{b.rv}}"); got != "/ns1b/66666666-2222-3333-4444-555555555555?rv=4000&x=0" {
		t.Error(got)
	}
}

// TestNormalShowsDifferences: what a client can tell stays in the text.
func TestNormalShowsDifferences(t *testing.T) {
	base := `{"kind":"Lease","metadata":{"name":"a","resourceVersion":"17"},"spec":{"renewTime":"2024-05-06T07:08:09.123456Z"}}`
	first := newMemory("ns1a").normal(reply(200, base))
	for _, change := range [][2]string{
		{`"name":"a"`, `"name":"b"`}, {`"17"`, `"017"`}, {`"17"`, `"x"`}, {"2024", "2023"}, {"123456Z", "123Z"}, {"}}", "}}\n"},
		{"{", "{\n  "},
	} {
		if newMemory("ns1a").normal(reply(200, strings.Replace(base, change[0], change[1], 1))) == first {
			t.Errorf("%s instead of %s is not seen", change[1], change[0])
		}
	}
	if newMemory("ns1a").normal(reply(201, base)) == first {
		t.Error("the status is not seen")
	}
}

// TestVersionsKeepTheirIdentity: the same version twice is seen to be the same,
// and a list must not be older than what is in it.
func TestVersionsKeepTheirIdentity(t *testing.T) {
	object := func(version string) *answer {
		return reply(200, `{"metadata":{"name":"a","resourceVersion":"`+version+`"}}`)
	}
	m := newMemory("ns1a")
	first := m.normal(object("5"))
	if m.normal(object("5")) != first {
		t.Error("the same version looks like another")
	}
	if m.normal(object("6")) == first {
		t.Error("another version looks like the same")
	}
	list := m.normal(reply(200,
		`{"kind":"LeaseList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","namespace":"ns1a","resourceVersion":"8"}}]}`))
	if !strings.Contains(list, "older than an item") {
		t.Error(list)
	}
}

func TestDiff(t *testing.T) {
	got := diff("a\nb\nc\nd\ne", "a\nc\nx\nd\ne")
	if want := []string{" a", "-b", " c", "+x", " d", " e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGenerateIsRepeatable: --seed and --only find the same requests again.
func TestGenerateIsRepeatable(t *testing.T) {
	for i := range 50 {
		a, b := generate(3, i), generate(3, i)
		if !reflect.DeepEqual(a, b) || len(a.steps) < stepsOfSequence {
			t.Fatalf("number %d: %v and %v", i, a, b)
		}
	}
}

func TestCorpusNames(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range corpus() {
		if q.name == "" || seen[q.name] || len(q.steps) == 0 {
			t.Errorf("sequence %q: no name, twice the same, or empty", q.name)
		}
		seen[q.name] = true
	}
}

// TestFingerprintSeesAll: whatever of a step changes, its recorded answer is not used.
func TestFingerprintSeesAll(t *testing.T) {
	base := post("/x", "{}")
	of := func(s step) string { return fingerprint(sequence{steps: []step{s}}) }
	for _, change := range []step{post("/y", "{}"), post("/x", "[]"), base.as("nobody"), base.later(), base.asProto(), base.accepting("x"),
		base.toTheEnd(), post("/x", "{}", "a=b"), put("/x", "{}")} {
		if of(change) == of(base) {
			t.Errorf("%#v looks like %#v", change, base)
		}
	}
	if of(base) != of(post("/x", "{}")) {
		t.Error("the same step looks like another")
	}
}

func TestMeantIsNarrow(t *testing.T) {
	wart := difference{asked: get("/x", "resourceVersion=abc"), peer: "HTTP/2.0 500\n \"message\": \"strconv.ParseUint\"",
		kontiki: "HTTP/2.0 400\n \"message\": \"invalid resource version\""}
	if whyMeant(wart) == nil {
		t.Error("a meant difference is not found")
	}
	for _, change := range []func(*difference){
		func(d *difference) { d.asked = get("/x") }, func(d *difference) { d.kontiki = "HTTP/2.0 404" },
		func(d *difference) { d.peer = "HTTP/2.0 400" }, func(d *difference) { d.kontiki += "\nmore" },
	} {
		other := wart
		change(&other)
		if whyMeant(other) != nil {
			t.Errorf("%+v is not meant", other)
		}
	}
}
