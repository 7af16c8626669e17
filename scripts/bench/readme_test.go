package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestRenew(t *testing.T) {
	begin := fmt.Sprintf(beginMark, "a.json")
	once, err := example().renew("before\n"+begin+"old\n"+endMark+"after\n", "a.json")
	if err != nil || strings.Contains(once, "old") || !strings.Contains(once, "| create pod | ") ||
		!strings.HasPrefix(once, "before\n"+begin) || !strings.HasSuffix(once, endMark+"after\n") {
		t.Errorf("%v in\n%s", err, once)
	}
	if twice, err := example().renew(once, "a.json"); err != nil || twice != once {
		t.Errorf("it is not stable: %v\n%s", err, twice)
	}
	for _, bad := range []string{"", begin, endMark, fmt.Sprintf(beginMark, "b.json") + endMark} {
		if _, err := example().renew(bad, "a.json"); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestDocumentsFitTheirRecords: nobody edits a number by hand, and no record is newer than its tables.
func TestDocumentsFitTheirRecords(t *testing.T) {
	const top = "../../"
	place, found := regexp.MustCompile(`<!-- made by scripts/bench from (\S+) -->`), 0
	for _, document := range []string{top + "README.md", "README.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range place.FindAllStringSubmatch(string(text), -1) {
			found++
			r, err := readRecord(top + match[1])
			if err != nil {
				t.Fatal(err)
			}
			if want, err := r.renew(string(text), match[1]); err != nil || want != string(text) {
				t.Errorf("%s is not what %s says: go run ./scripts/bench --show %[2]s --document %[1]s (%v)", document, match[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no document has a table")
	}
}
