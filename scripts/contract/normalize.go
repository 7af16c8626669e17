package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// normal is an answer as text, one fact a line, in which two servers that behave
// alike say the same. It notes in m what the server said.
func (m *memory) normal(a *answer) string {
	lines := []string{fmt.Sprintf("%s %d", a.proto, a.status)}
	lines = append(lines, m.headers(a.header)...)
	if a.stream != nil {
		return strings.Join(append(lines, "a stream"), "\n")
	}
	value, layout := decode(a.header.Get("Content-Type"), a.body)
	lines = append(lines, "body: "+layout)
	if value != nil {
		lines = append(lines, m.show(value, ""))
	}
	return strings.Join(lines, "\n")
}

// frames is what a stream said: its events and whether it ended.
func (m *memory) frames(all []frame, ended bool, garbage string) string {
	var lines []string
	for _, f := range m.relevant(all) {
		lines = append(lines, "event "+f.Type, m.show(f.Object, f.Type))
	}
	switch {
	case garbage != "":
		lines = append(lines, "broken off: "+garbage)
	case ended:
		lines = append(lines, "end of the stream")
	}
	return strings.Join(lines, "\n")
}

// relevant leaves out events about what is not of this sequence, and bookmarks
// that come when the server likes.
func (m *memory) relevant(all []frame) (relevant []frame) {
	for _, f := range all {
		text, _ := json.Marshal(f.Object)
		mark := strings.Contains(string(text), "k8s.io/initial-events-end")
		if f.Type == "BOOKMARK" && !mark || f.Type != "BOOKMARK" && m.foreign(f.Object) {
			continue
		}
		relevant = append(relevant, f)
	}
	return relevant
}

// unseen are headers that clients don't read or that differ by nature.
var unseen = map[string]bool{"Date": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true}

func (m *memory) headers(header http.Header) (lines []string) {
	for key, values := range header {
		if unseen[key] {
			continue
		}
		for _, value := range values {
			if key == "Audit-Id" || key == "Etag" || key == "Last-Modified" {
				value = "<some>"
			}
			lines = append(lines, key+": "+m.text(value, "message"))
		}
	}
	slices.Sort(lines)
	return lines
}

func (m *memory) show(value any, event string) string {
	if text, ok := value.(string); ok {
		return m.text(text, "message")
	}
	if document, ok := value.(map[string]any); ok {
		shared(document)
	}
	value = m.walk(value, "", event)
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// walk replaces what differs by nature; key is where the value was found.
func (m *memory) walk(value any, key, event string) any {
	switch value := value.(type) {
	case map[string]any:
		m.object(value, event)
		inner := ""
		if event == "ERROR" || value["rows"] != nil || value["object"] != nil {
			inner = event // a table's row holds the object that a bookmark is
		}
		for _, k := range sortedKeys(value) {
			inside := m.walk(value[k], k, inner)
			delete(value, k)
			value[m.text(k, "key")] = inside // keys of managedFields hold uids
		}
		return value
	case []any:
		for i := range value {
			value[i] = m.walk(value[i], key, event)
		}
		if key == "managedFields" || key == "causes" && mentions(value, "FieldManagerConflict") { // by time, or in any order
			slices.SortStableFunc(value, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return value
	case string:
		return m.text(value, key)
	case json.Number:
		if key == "retryAfterSeconds" && event == "ERROR" { // the peer throws dice
			return "<some>"
		}
		if key == "nodePort" || key == "healthCheckNodePort" { // the server's choice
			return nodePort.ReplaceAllString(value.String(), "<node port>")
		}
	}
	return value
}

func mentions(value any, word string) bool { return strings.Contains(fmt.Sprint(value), word) }

// object handles the metadata of an object, a list or a table.
func (m *memory) object(value map[string]any, event string) {
	metadata, ok := value["metadata"].(map[string]any)
	if !ok {
		return
	}
	kind, _ := value["kind"].(string)
	isList := kind == "Table" || strings.HasSuffix(kind, "List")
	for _, key := range []string{"items", "rows"} {
		if members, ok := value[key].([]any); ok && isList {
			value[key] = slices.DeleteFunc(members, m.foreign)
		}
	}
	version, _ := metadata["resourceVersion"].(string)
	name, _ := metadata["name"].(string)
	name = m.generated(metadata, name)
	switch {
	case version == "":
	case isList && event == "":
		m.note("list.rv", version)
		metadata["resourceVersion"] = m.listVersion(version, value["items"])
	case event == "BOOKMARK":
		metadata["resourceVersion"] = m.listVersion(version, nil)
	case isList:
		metadata["resourceVersion"] = m.version(version)
	default:
		m.note(name+".rv", version)
		metadata["resourceVersion"] = m.version(version)
	}
	if uid, ok := metadata["uid"].(string); ok {
		m.note(name+".uid", uid)
	}
	if kind == services.kind {
		m.given(name, value)
	}
	if token, ok := metadata["continue"].(string); ok {
		m.note("list.continue", token)
		metadata["continue"] = continueToken(token)
	}
}

// generated remembers a generated name; text hides it.
func (m *memory) generated(metadata map[string]any, name string) string {
	if prefix, _ := metadata["generateName"].(string); prefix != "" && len(name) > len(prefix) {
		m.note("generated.name", name)
		return "generated"
	}
	return strings.ReplaceAll(name, m.namespace, "$NS")
}

// listVersion is what stands for the version of a list, which moves with every
// write anywhere: it must be a number that no item is ahead of.
func (m *memory) listVersion(version string, items any) string {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil || version[0] == '0' {
		return version
	}
	members, _ := items.([]any)
	for _, item := range members {
		object, _ := item.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		of, _ := metadata["resourceVersion"].(string)
		if n, err := strconv.ParseUint(of, 10, 64); err == nil && n > number {
			return "<older than an item>"
		}
	}
	return "<latest>"
}

// continueToken is what a token says beside its version.
func continueToken(token string) string {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || token == "" {
		return token
	}
	var inside map[string]any
	if json.Unmarshal(text, &inside) != nil {
		return token
	}
	if version, ok := inside["rv"].(float64); ok && version > 0 {
		inside["rv"] = "<latest>"
	}
	start, _ := inside["start"].(string)
	inside["start"] = strings.TrimPrefix(start, "/") // the key's prefix ends before or after it
	return fmt.Sprint(inside)
}

// foreign says whether an object is of another sequence, or the server's own.
func (m *memory) foreign(value any) bool {
	object, _ := value.(map[string]any)
	if inner, ok := object["object"].(map[string]any); ok { // a table's row
		object = inner
	}
	if rows, ok := object["rows"].([]any); ok && len(rows) > 0 { // a table in a stream
		return m.foreign(rows[0])
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	if namespace == "" {
		return name != "" && !strings.Contains(name, m.namespace)
	}
	return namespace != m.namespace
}

var (
	uuid      = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	clockTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	age       = regexp.MustCompile(`^\d+[smhdy](\d+[smhd])?$`)
	ageInside = regexp.MustCompile(`(over|ago) \d+[smhdy](\d+[smhd])?`)
	address   = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}:\d{2,5}\b`)
	// What a server gives to services: addresses of servers.ServiceIPs, and ports of
	// upstream's range.
	serviceAddress = regexp.MustCompile(`\b10\.96\.\d{1,3}\.\d{1,3}\b`)
	nodePort       = regexp.MustCompile(`\b3[0-2]\d{3}\b`)
	nodePortInside = regexp.MustCompile(`(Invalid value: |duplicate nodePort: \{[A-Z]+ )3[0-2]\d{3}\b`)
	// storageKey is where an object is in etcd, or in the log.
	storageKey = regexp.MustCompile(`Key: /[a-z.0-9/]*/(\$NS|[a-z0-9.-]+)/`)
	// badPatch is followed by errors in any order, and not by all of them: a
	// typed object is looked through in the order of a Go map.
	badPatch = regexp.MustCompile(`(failed to create typed patch object)( \([^)]*\))?: (?s:.*)`)
	// versionInside finds versions by the words in front of them.
	versionInside = regexp.MustCompile(`((?i:resource ?version|object meta|current|revision)[^0-9<>]{0,40}|too old resource version: \d+ \()(\d+)`)
)

// text replaces what differs by nature inside a string.
func (m *memory) text(text, key string) string {
	for _, prefix := range m.prefixes {
		text = prefix.ReplaceAllString(text, "$1<random>")
	}
	text = strings.ReplaceAll(text, m.namespace, "$NS")
	text = uuid.ReplaceAllStringFunc(text, func(id string) string { return m.place("uid", id) })
	text = clockTime.ReplaceAllStringFunc(text, aroundNow)
	text = serviceAddress.ReplaceAllString(text, "<service address>")
	switch key {
	case "message":
		text = versionInside.ReplaceAllString(text, "$1<number>")
		text = storageKey.ReplaceAllString(text, "Key: <where it is stored>/$1/")
		text = badPatch.ReplaceAllString(text, "$1: <some errors>")
		text = nodePortInside.ReplaceAllString(text, "$1<node port>")
		text = address.ReplaceAllString(text, "<address>")
	case "serverRelativeURL":
		text, _, _ = strings.Cut(text, "?hash=") // of all that is in there
	case "serverAddress":
		text = address.ReplaceAllString(text, "<address>")
	case "cells":
		text = nodePort.ReplaceAllString(text, "<node port>")
		text = age.ReplaceAllString(text, "<age>")
		text = ageInside.ReplaceAllString(text, "$1 <age>")
	}
	return text
}

// aroundNow hides a time of today but keeps its form; other times are the client's.
func aroundNow(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || time.Since(at).Abs() > 24*time.Hour {
		return text
	}
	if strings.Contains(text, ".") {
		return "<now, with a fraction>"
	}
	return "<now>"
}

func sortedKeys(of map[string]any) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
