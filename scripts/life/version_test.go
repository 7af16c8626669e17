package life

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// stamp is where a program says which commit it was built from, or that nobody knows.
var stamp = regexp.MustCompile(`vcs\.revision=[0-9a-f]{12}|mod\tkontiki\t\(devel\)`)

// laterRelease makes a copy of a program that says it is of another version: what a build of the
// next commit would be, without the minutes that linking takes.
func laterRelease(t *testing.T, program string) (path, version string) {
	t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	found := stamp.FindAll(text, -1)
	if found == nil {
		t.Fatal(errors.New("the program has no version that could be another"))
	}
	version = "feedfacecafe"
	for _, old := range found {
		name, _, revision := bytes.Cut(old, []byte("="))
		fresh := append(append(bytes.Clone(name), '='), version...)
		if !revision {
			version = "v9.99.9"
			fresh = bytes.ReplaceAll(old, []byte("(devel)"), []byte(version))
		}
		text = bytes.ReplaceAll(text, old, fresh)
	}
	path = filepath.Join(t.TempDir(), "kontiki")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path, version
}
