package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// The tables of a document stand between these lines.
const (
	beginMark = "<!-- made by scripts/bench from %s -->\n"
	endMark   = "<!-- end of what scripts/bench made -->\n"
)

// renew puts the record's tables into a document in place of those that it has from the same file.
func (r *record) renew(document, from string) (string, error) {
	begin := fmt.Sprintf(beginMark, from)
	head, rest, found := strings.Cut(document, begin)
	_, tail, ended := strings.Cut(rest, endMark)
	if !found || !ended {
		return "", fmt.Errorf("no place for the tables: want the lines\n%s%s", begin, endMark)
	}
	var tables bytes.Buffer
	err := r.print(&tables, "markdown")
	return head + begin + tables.String() + endMark + tail, err
}

// renewFile is renew for a file.
func (r *record) renewFile(path, from string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := r.renew(string(old), from)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
