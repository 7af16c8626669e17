package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kontiki/scripts/chaos/faults"
)

// testFaults are the short chaos of every test run: one or two of each kind.
const testFaults = "kill-leader,isolate-leader,pause-leader,hung-leader-for-clients-only,slow-fsync-leader+kill-follower,eio-leader," +
	"term-leader,bridge,answers-cut,crash-loop-follower,cut-until-compacted"

// testBound is for a machine that is busy; the run itself takes a good minute.
const testBound = 6 * time.Minute

func TestShortChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	binary := filepath.Join(t.TempDir(), "kontiki-faults")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "faults", "-o", binary, "../../cmd/kontiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testBound)
	defer cancel()
	var said bytes.Buffer
	err := command(ctx, []string{"--binary", binary, "--faults", testFaults}, &said)
	t.Log(said.String())
	if err != nil {
		t.Error(err)
	}
}

func TestCommandLine(t *testing.T) {
	var said bytes.Buffer
	if err := command(t.Context(), []string{"--list"}, &said); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(said.String(), "\n"); lines != len(faults.All()) {
		t.Errorf("--list has %d lines for %d faults", lines, len(faults.All()))
	}
	dir := filepath.Join(t.TempDir(), "not", "there")
	if err := command(t.Context(), []string{"--dir", dir, "--faults", "no-such"}, io.Discard); err == nil {
		t.Error("a fault that is not there is taken")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("--dir is not made:", err)
	}
	for _, wrong := range [][]string{{"--faults", "no-such"}, {"--nodes", "0"}, {"--loopback", "--faults", "bridge"}} {
		if err := command(t.Context(), wrong, io.Discard); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestDeck(t *testing.T) {
	deal := func(seed uint64) (acts []string) {
		deck, err := newDeck(options{seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for {
			hand := deck.deal(len(acts) < len(faults.All())+12)
			if len(hand) == 0 {
				return acts
			}
			for i, a := range hand {
				if len(a) == 1 && a[0].Alone && i < len(hand)-1 {
					t.Errorf("seed %d: %s is not the last of its round", seed, a)
				}
				acts = append(acts, a.String())
			}
		}
	}
	first := deal(7)
	if !slices.Equal(first, deal(7)) {
		t.Error("one seed deals two different hands")
	}
	if slices.Equal(first, deal(8)) {
		t.Error("two seeds deal the same hands")
	}
	for _, fault := range faults.All() {
		if !slices.Contains(first, fault.Name) {
			t.Errorf("%s is never dealt", fault.Name)
		}
	}
	if !strings.Contains(first[len(first)-1], "+") {
		t.Errorf("no pairs after the list, but %s", first[len(first)-1])
	}
}

// TestLedger keeps README.md and the table of faults together.
func TestLedger(t *testing.T) {
	ledger, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, fault := range faults.All() {
		if seen[fault.Name] {
			t.Errorf("two faults are called %s", fault.Name)
		}
		seen[fault.Name] = true
		if !strings.Contains(string(ledger), "`"+fault.Name+"`") {
			t.Errorf("%s is not in README.md", fault.Name)
		}
	}
}

// TestNamedTestsExist: what the two READMEs name as the check of a promise or of a trap is there.
func TestNamedTestsExist(t *testing.T) {
	functions := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|[a-z]\w+)\((?:t \*testing\.T|s \*story)\)`)
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(source, -1) {
			functions[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	test, row := regexp.MustCompile("`(Test[A-Z]\\w*)`"), regexp.MustCompile("(?m)^\\|[^|\n]+\\|[^|\n]+\\| *(`.*`) *\\|$")
	for file, least := range map[string]int{"README.md": 15, "../../README.md": 25} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := test.FindAllStringSubmatch(string(text), -1)
		if file != "README.md" {
			for _, checked := range row.FindAllStringSubmatch(guarantees(string(text)), -1) {
				names = append(names, regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(checked[1], -1)...)
			}
		}
		for _, name := range names {
			if !functions[name[1]] {
				t.Errorf("%s names %s, which is not there", file, name[1])
			}
		}
		if len(names) < least {
			t.Errorf("%s names only %d tests", file, len(names))
		}
	}
}

// guarantees is the section of README.md whose rows end with what checks them.
func guarantees(readme string) string {
	_, section, _ := strings.Cut(readme, "\n## Guarantees\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
