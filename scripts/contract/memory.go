package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A memory is what one server has said in one sequence: the values that differ
// from server to server, with the placeholder each has got. A placeholder tells
// in which step a value was first seen, so servers that behave alike get alike
// texts, also after a step in which they did not.
type memory struct {
	namespace string
	step      int
	places    map[string]string   // uid, object version or generated name: its placeholder
	counts    map[string]int      // of placeholders, by kind and step
	said      map[string][]string // by what {{...}} of a step calls it: all values, latest last; see expand
	versions  []uint64            // object versions that have got a placeholder
	prefixes  []*regexp.Regexp    // of names that the server generates
}

func newMemory(namespace string) *memory {
	return &memory{namespace: namespace, places: map[string]string{}, counts: map[string]int{}, said: map[string][]string{}}
}

// at says which step is next.
func (m *memory) at(step int) { m.step = step }

func (m *memory) clone() *memory {
	c := *m
	c.places, c.counts, c.said = maps.Clone(m.places), maps.Clone(m.counts), map[string][]string{}
	for key, values := range m.said {
		c.said[key] = slices.Clone(values)
	}
	c.versions = slices.Clone(m.versions)
	return &c
}

// place returns the placeholder of a value; kind is what it is called.
func (m *memory) place(kind, value string) string {
	key := kind + " " + value
	if m.places[key] == "" {
		within := fmt.Sprint(kind, " ", m.step)
		m.counts[within]++
		m.places[key] = fmt.Sprintf("<%s %d.%d>", kind, m.step, m.counts[within])
	}
	return m.places[key]
}

// version is place for an object's version. Versions that are not what a client
// may count on, a positive decimal, stay as they are and so are seen.
func (m *memory) version(value string) string {
	number, err := strconv.ParseUint(value, 10, 64)
	if err != nil || number == 0 || value[0] == '0' {
		return value
	}
	if m.places["version "+value] == "" {
		m.versions = append(m.versions, number)
	}
	return m.place("version", value)
}

// versionOrder says in which order the versions are that have got placeholders.
func (m *memory) versionOrder() string {
	ranks := slices.Clone(m.versions)
	slices.Sort(ranks)
	var order []string
	for _, v := range ranks {
		order = append(order, m.place("version", fmt.Sprint(v)))
	}
	return strings.Join(order, "\n")
}

// note keeps what later steps may refer to.
func (m *memory) note(key, value string) {
	if known := m.said[key]; value != "" && (len(known) == 0 || known[len(known)-1] != value) {
		m.said[key] = append(known, value)
	}
}

var reference = regexp.MustCompile(`\{\{([^{}]+)\}\}`)

// given notes what a service was given out of a range: its address, and the node
// port of its first port.
func (m *memory) given(name string, service map[string]any) {
	spec, _ := service["spec"].(map[string]any)
	if address, ok := spec["clusterIP"].(string); ok {
		m.note(name+".clusterIP", address)
	}
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
		return
	}
	first, _ := ports[0].(map[string]any)
	if port, ok := first["nodePort"].(json.Number); ok {
		m.note(name+".nodePort", port.String())
	}
}

// expand fills in $NS, and {{name.uid}}, {{name.rv}}, {{list.rv}} and
// {{list.continue}} with what the server said last, {{first name.rv}} with what
// it said first, {{name.name}} with a generated name, {{name.clusterIP}} and
// {{name.nodePort}} with what a service has got. What it never said is 0.
func (m *memory) expand(text string) string {
	text = strings.ReplaceAll(text, "$NS", m.namespace)
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		key := strings.Trim(match, "{}")
		key, first := strings.CutPrefix(key, "first ")
		values := m.said[key]
		switch {
		case len(values) == 0:
			return "0"
		case first:
			return values[0]
		default:
			return values[len(values)-1]
		}
	})
}

var generateName = regexp.MustCompile(`"generateName":"([^"]+)"`)

// prepare is the step as this server gets it.
func (m *memory) prepare(s step) step {
	if asked := generateName.FindStringSubmatch(m.expand(s.body)); asked != nil {
		prefix := asked[1][:min(len(asked[1]), 58)]
		m.prefixes = append(m.prefixes, regexp.MustCompile(`\b(`+regexp.QuoteMeta(prefix)+`)[bcdfghjklmnpqrstvwxz2456789]{5}\b`))
	}
	s.path, s.query, s.body = m.expand(s.path), m.expand(s.query), m.expand(s.body)
	s.header = slices.Clone(s.header)
	for i := range s.header {
		s.header[i][1] = m.expand(s.header[i][1])
	}
	return s
}
