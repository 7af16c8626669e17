package storage_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUpstream runs upstream's suite for implementations of storage.Interface,
// on a node of its own and through a follower of three. The two run side by
// side, the cases of each one after the other, because the suite computes "the
// next version" as one more.
func TestUpstream(t *testing.T) {
	for name, size := range map[string]int{"single": 1, "follower": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := startNodes(t, size)
			n := nodes[len(nodes)-1]
			term := n.cluster.Status().Term
			for i, name := range slices.Sorted(maps.Keys(upstreamCases)) {
				t.Run(name, func(t *testing.T) { newUpstreamCase(t, n, fmt.Sprintf("/t%d", i)).run(upstreamCases[name]) })
			}
			if now := n.cluster.Status().Term; now != term {
				t.Errorf("the leader changed (term %d, then %d): failures above may come of that, this machine is too busy", term, now)
			}
		})
	}
}

// TestUpstreamIsWhole fails when upstream has a case that is in neither table,
// or no longer one that is.
func TestUpstreamIsWhole(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/apiserver/pkg/storage/testing").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := exportedRuns(t, strings.TrimSpace(string(out)))
	if len(found) < 50 {
		t.Fatalf("found only %d cases in %s: %v", len(found), out, found)
	}
	known := slices.Collect(maps.Keys(upstreamCases))
	for name := range upstreamLeftOut {
		if upstreamCases[name] != nil {
			t.Errorf("%s is run and left out", name)
		}
		known = append(known, name)
	}
	for _, name := range found {
		if !slices.Contains(known, name) {
			t.Errorf("upstream has %s: run it, or leave it out with a reason", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(found, name) {
			t.Errorf("upstream no longer has %s", name)
		}
	}
}

// exportedRuns returns the functions Run... of a package. Benchmarks are not tests.
func exportedRuns(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Run") && !strings.HasPrefix(fn.Name.Name, "RunBenchmark") {
				found = append(found, fn.Name.Name)
			}
		}
	}
	return found
}
