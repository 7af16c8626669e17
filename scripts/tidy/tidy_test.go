// Package tidy holds the rules of the house as tests that read the source tree: which room may import
// which, how long a file or a function may get, what has no place here. Every rule says why it is there,
// and is itself tested with a small source that breaks it.
package tidy

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	fileLinesMax     = 500
	functionLinesMax = 70
	ours             = "kontiki/"
)

// A file is one Go file of the tree; path is relative to the top and has forward slashes.
type file struct {
	path   string
	syntax *ast.File
	fset   *token.FileSet
}

func (f *file) dir() string                      { return path.Dir(f.path) }
func (f *file) isTest() bool                     { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) line(p token.Pos) int             { return f.fset.Position(p).Line }
func (f *file) under(dirs ...string) bool        { return under(f.path, dirs...) }
func (f *file) length() int                      { return f.fset.File(f.syntax.FileStart).LineCount() }
func (f *file) generated() bool                  { return ast.IsGenerated(f.syntax) }
func (f *file) at(line int, what string) finding { return finding{f.path, line, what} }

// A finding is one broken rule at one place.
type finding struct {
	path string
	line int
	what string
}

// A rule looks at one file at a time.
type rule struct {
	name  string
	why   string
	check func(*file) []finding
}

var rules = []rule{
	{"import arrows", "rooms depend one way, cmd -> api -> {watch, cluster} -> fsm, so each can be understood without those above it", importArrows},
	{"fsm has no clock and no luck", "every replica must compute the same state from the same log entries", fsmImports},
	{"kubernetes stays in the api", "cluster knows nodes, watch knows order, fsm knows bytes; only api knows Kubernetes", kubernetesImports},
	{"k8s.io/kubernetes stays in the registry", "kinds are rows of one table; nothing else may depend on Kubernetes' internals", kubernetesInternals},
	{"short files", fmt.Sprintf("a file of more than %d lines tells more than one story", fileLinesMax), shortFiles},
	{"short functions", fmt.Sprintf("a function of more than %d lines doesn't fit on a screen", functionLinesMax), shortFunctions},
	{"no sleeping tests", "a sleep is too short on a slow machine and too long on a fast one: wait for the condition, or sleep inside synctest.Test", noSleepInTests},
	{"no init functions", "work at import time has no caller, no error and no order: call it from where it is needed", noInit},
	{"no util", "a name that fits everything says nothing: name the file after what it does", noUtil},
}

func importArrows(f *file) []finding {
	forbidden := map[string][]string{ // room: the rooms that it must not import
		"fsm":     {"watch", "cluster", "api", "scripts"},
		"watch":   {"cluster", "api", "scripts"},
		"cluster": {"watch", "api", "scripts"},
		"api":     {"scripts"},
	}
	room, _, _ := strings.Cut(f.path, "/")
	return f.eachImport(func(imported string) string {
		inside, isOurs := strings.CutPrefix(imported, ours)
		switch {
		case !isOurs:
			return ""
		case under(inside, "cmd") && room != "cmd":
			return "imports " + imported + ": nobody else imports cmd"
		case !f.isTest() && under(inside, forbidden[room]...):
			return fmt.Sprintf("imports %s: %s must not know it", imported, room)
		}
		return ""
	})
}

func fsmImports(f *file) []finding {
	if f.isTest() || !f.under("fsm") {
		return nil
	}
	return f.eachImport(func(imported string) string {
		if under(imported, "time", "math/rand", "crypto/rand") {
			return "imports " + imported
		}
		return ""
	})
}

func kubernetesImports(f *file) []finding {
	if f.isTest() || !f.under("fsm", "watch", "cluster") {
		return nil
	}
	return f.eachImport(func(imported string) string {
		if under(imported, "k8s.io", "sigs.k8s.io") {
			return "imports " + imported
		}
		return ""
	})
}

func kubernetesInternals(f *file) []finding {
	if f.isTest() || f.under("api/registry", "api/duties") {
		return nil
	}
	return f.eachImport(func(imported string) string {
		if under(imported, "k8s.io/kubernetes") {
			return "imports " + imported + ": only api/registry (kinds) and api/duties (controllers) may"
		}
		return ""
	})
}

func shortFiles(f *file) []finding {
	if f.isTest() || f.generated() || f.length() <= fileLinesMax {
		return nil
	}
	return []finding{f.at(f.length(), fmt.Sprintf("has %d lines", f.length()))}
}

func shortFunctions(f *file) (found []finding) {
	if f.isTest() || f.generated() {
		return nil
	}
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			if lines := f.line(fn.End()) - f.line(fn.Pos()) + 1; lines > functionLinesMax {
				found = append(found, f.at(f.line(fn.Pos()), fmt.Sprintf("function %s has %d lines", fn.Name.Name, lines)))
			}
		}
	}
	return found
}

// noSleepInTests also looks at packages for tests, such as clustertest. A sleep on synctest's clock takes no time.
func noSleepInTests(f *file) (found []finding) {
	if !f.isTest() && !strings.HasSuffix(f.dir(), "test") {
		return nil
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && f.names(call.Fun, "testing/synctest", "Test") {
			return false
		}
		if expr, ok := n.(ast.Expr); ok && f.names(expr, "time", "Sleep") {
			found = append(found, f.at(f.line(n.Pos()), "uses time.Sleep"))
		}
		return true
	})
	return found
}

func noInit(f *file) (found []finding) {
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, f.at(f.line(fn.Pos()), "declares init()"))
		}
	}
	return found
}

var vague = regexp.MustCompile(`(^|[/_])utils?([/_.]|$)`)

func noUtil(f *file) []finding {
	if vague.MatchString(f.path) {
		return []finding{f.at(1, "is named util")}
	}
	return nil
}

// packageComments looks at all files at once: a package's comment stands in exactly one of them.
// Test files count only where there is nothing else.
func packageComments(files []*file) (found []finding) {
	packages := map[string][]*file{}
	for _, f := range files {
		packages[f.dir()] = append(packages[f.dir()], f)
	}
	for dir, all := range packages {
		code := slices.DeleteFunc(slices.Clone(all), (*file).isTest)
		if len(code) == 0 {
			code = all
		}
		comments := slices.DeleteFunc(slices.Clone(code), func(f *file) bool { return f.syntax.Doc.Text() == "" })
		switch {
		case len(comments) == 0:
			found = append(found, code[0].at(1, "package "+dir+" has no package comment in any file"))
		case len(comments) > 1:
			for _, f := range comments[1:] {
				found = append(found, f.at(f.line(f.syntax.Doc.Pos()), "a second package comment, the first is in "+comments[0].path))
			}
		}
	}
	return found
}

// topLevel looks at the paths that git tracks.
func topLevel(tracked []string) (found []finding) {
	allowed := strings.Fields("cmd fsm cluster api watch scripts go.mod go.sum Makefile README.md LICENSE")
	seen := map[string]bool{}
	for _, name := range tracked {
		top, _, _ := strings.Cut(name, "/")
		if !seen[top] && !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			found = append(found, finding{name, 1, top + " does not belong at the top; only " + strings.Join(allowed, " ") + " and dot-files do"})
		}
		seen[top] = true
	}
	return found
}

func noReplace(goMod string) (found []finding) {
	for i, line := range strings.Split(goMod, "\n") {
		if word := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t(", r) }); len(word) > 0 && word[0] == "replace" {
			found = append(found, finding{"go.mod", i + 1, "has a replace line"})
		}
	}
	return found
}

// under says whether a slash-separated path is one of dirs or inside it.
func under(name string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

// eachImport asks about every import; a non-empty answer is a finding.
func (f *file) eachImport(wrong func(imported string) string) (found []finding) {
	for _, spec := range f.syntax.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			if what := wrong(imported); what != "" {
				found = append(found, f.at(f.line(spec.Pos()), what))
			}
		}
	}
	return found
}

// names says whether expr is the given name of an imported package, under whatever name it was imported.
func (f *file) names(expr ast.Expr, importPath, name string) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	qualifier, ok := selector.X.(*ast.Ident)
	return ok && slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool {
		local := path.Base(importPath)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		return spec.Path.Value == strconv.Quote(importPath) && qualifier.Name == local
	})
}

func parse(name string, source []byte) (*file, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	return &file{name, syntax, fset}, err
}

// tree reads every Go file below top, except in testdata and in directories that Go ignores too.
func tree(top string) (files []*file, err error) {
	err = fs.WalkDir(os.DirFS(top), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != "." && (base == "testdata" || base == "bin" || strings.ContainsAny(base[:1], "._")) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return err
		}
		f, err := parse(name, source)
		files = append(files, f)
		return err
	})
	return files, err
}

func report(t *testing.T, why string, found []finding) {
	t.Helper()
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line))
	})
	for _, f := range found {
		t.Errorf("%s:%d: %s", f.path, f.line, f.what)
	}
	if len(found) > 0 {
		t.Log("why: " + why)
	}
}

func apply(r rule, files []*file) (found []finding) {
	for _, f := range files {
		found = append(found, r.check(f)...)
	}
	return found
}

const top = "../.." // from this package's directory, where go test runs it

func TestTree(t *testing.T) {
	files, err := tree(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { report(t, r.why, apply(r, files)) })
	}
	t.Run("one package comment", func(t *testing.T) {
		report(t, "a package tells its story once, where go doc finds it", packageComments(files))
	})
	t.Run("no replace", func(t *testing.T) {
		goMod, err := os.ReadFile(filepath.Join(top, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		report(t, "a replaced module is not the one that others review, and replace does not reach importers", noReplace(string(goMod)))
	})
	t.Run("top level", func(t *testing.T) {
		listing := exec.Command("git", "ls-files", "-z")
		listing.Dir = top
		out, err := listing.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			t.Skipf("git ls-files: %s", exit.Stderr)
		} else if err != nil {
			t.Skip(err)
		}
		report(t, "a newcomer reads the top level first: five rooms and what runs them", topLevel(strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })))
	})
}

// TestRulesCanFail breaks every rule once, and shows what comes close without breaking it.
func TestRulesCanFail(t *testing.T) {
	long := func(n int) string { return strings.Repeat("\n", n) }
	cases := []struct {
		rule, path, source string
		line               int // of the one finding; 0: none
	}{
		{"import arrows", "fsm/a.go", `package fsm; import "kontiki/watch"`, 1},
		{"import arrows", "watch/a.go", `package watch; import "kontiki/cluster"`, 1},
		{"import arrows", "cluster/pki/a.go", "package pki\nimport \"kontiki/watch\"", 2},
		{"import arrows", "cluster/a.go", `package cluster; import "kontiki/api/storage"`, 1},
		{"import arrows", "api/a_test.go", `package api; import "kontiki/cmd/kontiki"`, 1},
		{"import arrows", "api/a.go", `package api; import ("kontiki/watch"; "kontiki/cluster"; "kontiki/fsm"; "kontiki/api/auth")`, 0},
		{"import arrows", "cluster/a.go", `package cluster; import ("kontiki/fsm"; "kontiki/cluster/pki"; "kontiki/watchdog")`, 0},
		{"import arrows", "cmd/kontiki/a.go", `package main; import ("kontiki/api"; "kontiki/fsm")`, 0},
		{"fsm has no clock and no luck", "fsm/a.go", `package fsm; import clock "time"`, 1},
		{"fsm has no clock and no luck", "fsm/tree/a.go", `package tree; import "math/rand/v2"`, 1},
		{"fsm has no clock and no luck", "fsm/a_test.go", `package fsm; import "time"`, 0},
		{"fsm has no clock and no luck", "watch/a.go", `package watch; import "time"`, 0},
		{"kubernetes stays in the api", "cluster/pki/a.go", `package pki; import "k8s.io/client-go/util/cert"`, 1},
		{"kubernetes stays in the api", "watch/a.go", `package watch; import "sigs.k8s.io/yaml"`, 1},
		{"kubernetes stays in the api", "api/a.go", `package api; import "k8s.io/apiserver/pkg/server"`, 0},
		{"k8s.io/kubernetes stays in the registry", "api/a.go", `package api; import _ "k8s.io/kubernetes/pkg/api/legacyscheme"`, 1},
		{"k8s.io/kubernetes stays in the registry", "api/registry/a.go", `package registry; import "k8s.io/kubernetes/pkg/printers"`, 0},
		{"k8s.io/kubernetes stays in the registry", "api/a_test.go", `package api; import "k8s.io/kubernetes/pkg/printers"`, 0},
		{"short files", "api/a.go", "package api" + long(501), 501},
		{"short files", "api/a.go", "package api" + long(500), 0},
		{"short files", "api/a_test.go", "package api" + long(501), 0},
		{"short files", "api/a.go", "// Code generated by hand. DO NOT EDIT.\n\npackage api" + long(501), 0},
		{"short functions", "api/a.go", "package api\nfunc (t T) f() {" + long(70) + "}", 2},
		{"short functions", "api/a.go", "package api\nfunc f() {" + long(69) + "}", 0},
		{"no sleeping tests", "api/a_test.go", "package api\nimport \"time\"\nfunc f() { time.Sleep(1) }", 3},
		{"no sleeping tests", "api/a_test.go", "package api\nimport clock \"time\"\nvar sleep =\nclock.Sleep", 4},
		{"no sleeping tests", "cluster/clustertest/a.go", `package clustertest; import "time"; func f() { time.Sleep(1) }`, 1},
		{"no sleeping tests", "api/a_test.go", `package api; import ("testing/synctest"; "time"); func f() { synctest.Test(t, func() { time.Sleep(1) }) }`, 0},
		{"no sleeping tests", "api/a_test.go", `package api; import "time"; func f() { <-time.After(1); clock.Sleep(1) }`, 0},
		{"no init functions", "api/a.go", "package api\nfunc init() {}", 2},
		{"no init functions", "api/a.go", `package api; func (T) init() {}; func initialize() {}`, 0},
		{"no util", "api/util.go", `package api`, 1},
		{"no util", "fsm/utils/a.go", `package utils`, 1},
		{"no util", "api/http_util_test.go", `package api`, 1},
		{"no util", "api/utility.go", `package api`, 0},
	}
	broken := map[string]bool{}
	for _, c := range cases {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == c.rule })
		if i < 0 {
			t.Fatalf("no rule %q", c.rule)
		}
		found := apply(rules[i], sources(t, c.path, c.source))
		if lines := linesOf(found); c.line == 0 && len(found) > 0 || c.line > 0 && !slices.Equal(lines, []int{c.line}) {
			t.Errorf("%s: %s: %.80q: want a finding at line %d (0: none), have %v", c.rule, c.path, c.source, c.line, found)
		}
		broken[c.rule] = broken[c.rule] || c.line > 0
	}
	for _, r := range rules {
		if !broken[r.name] {
			t.Errorf("no source here breaks rule %q", r.name)
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, c := range []struct {
		files []string // path, source, path, source, ...
		want  int
	}{
		{[]string{"a/a.go", "// Package a.\npackage a", "a/b.go", "package a"}, 0},
		{[]string{"a/a.go", "package a", "a/b.go", "//go:build linux\npackage a"}, 1},
		{[]string{"a/a.go", "// Package a.\npackage a", "a/b.go", "// Package a.\npackage a"}, 1},
		{[]string{"a/a.go", "package a", "a/a_test.go", "// Package a.\npackage a"}, 1},
		{[]string{"a/a_test.go", "// Package a.\npackage a"}, 0},
	} {
		if found := packageComments(sources(t, c.files...)); len(found) != c.want {
			t.Errorf("%q: want %d findings, have %v", c.files, c.want, found)
		}
	}
}

func TestTopLevelAndReplace(t *testing.T) {
	found := topLevel([]string{".ci/run", "README.md", "fsm/fsm.go", "pkg/a.go", "pkg/b.go", "main.go"})
	if len(found) != 2 || found[0].path != "pkg/a.go" || found[1].path != "main.go" {
		t.Errorf("want pkg and main.go, have %v", found)
	}
	for goMod, want := range map[string][]int{
		"module m\n\nreplace a => b":                {3},
		"replace (\n\ta => b\n)":                    {1},
		"replace(\n\ta => b\n)":                     {1},
		"// replace nothing\nrequire replaced v1\n": nil,
	} {
		if lines := linesOf(noReplace(goMod)); !slices.Equal(lines, want) {
			t.Errorf("%q: want %v, have %v", goMod, want, lines)
		}
	}
}

// sources parses path, source, path, source, ...
func sources(t *testing.T, pairs ...string) (files []*file) {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		f, err := parse(pair[0], []byte(pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func linesOf(found []finding) (lines []int) {
	for _, f := range found {
		lines = append(lines, f.line)
	}
	return lines
}
