package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what kubectl prints into testdata/kubectl, to be looked at before it is committed")

// TestKubectlGolden runs the scripts in testdata/kubectl, each on a server of
// its own. A script is commands for the shell, "$ " before each and "> " before
// its further lines, and below each what it must print.
func TestKubectlGolden(t *testing.T) {
	t.Parallel()
	program(t, "KUBECTL_BIN")
	files, err := filepath.Glob("testdata/kubectl/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s, err := readShellScript(file)
			if err != nil {
				t.Fatal(err)
			}
			c := newCluster(t, 1, nil)
			c.waitServersPublished()
			env := shellEnvironment(t, c.nodes[0].Kubeconfig)
			for i := range s.steps {
				step := &s.steps[i]
				got := runShell(t, env, step.command())
				if !*update && got != step.output {
					t.Errorf("%s: $ %s\nprints:\n%s\nwant:\n%s", file, step.command(), got, step.output)
				}
				step.output = got
			}
			if *update {
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// shellScript is a golden file.
type shellScript struct {
	head  string // comments
	steps []shellStep
}

type shellStep struct {
	lines  []string // of the command
	output string
}

func (s shellStep) command() string { return strings.Join(s.lines, "\n") }

func readShellScript(file string) (s shellScript, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(data)) {
		first, isFirst := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		last := len(s.steps) - 1
		switch {
		case isFirst:
			s.steps = append(s.steps, shellStep{lines: []string{strings.TrimSuffix(first, "\n")}})
		case last < 0:
			s.head += line
		case isMore && s.steps[last].output == "":
			s.steps[last].lines = append(s.steps[last].lines, strings.TrimSuffix(more, "\n"))
		default:
			s.steps[last].output += line
		}
	}
	if len(s.steps) == 0 {
		return s, errors.New(file + " has no commands")
	}
	return s, nil
}

// String is the script as its file has it.
func (s shellScript) String() string {
	text := s.head
	for _, step := range s.steps {
		text += "$ " + strings.Join(step.lines, "\n> ") + "\n" + step.output
	}
	return text
}

// shellEnvironment has kubectl in its path, which talks to that server.
func shellEnvironment(t testing.TB, kubeconfig string) []string {
	t.Helper()
	kubectl, err := filepath.Abs(program(t, "KUBECTL_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	bin, home := t.TempDir(), t.TempDir()
	if err := os.Symlink(kubectl, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + kubeconfig,
		"TZ=UTC", "LC_ALL=C", "TERM=dumb",
	}
}

// runShell returns what a command prints, without what differs from run to run.
func runShell(t testing.TB, env []string, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // longer than any --timeout
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.WaitDelay = patience
	cmd.Dir, cmd.Env = filepath.Join("testdata", "kubectl"), env
	out, err := cmd.CombinedOutput()
	text := normal(string(out))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	} else if err != nil {
		text += fmt.Sprintf("[exit code %d]\n", exit.ExitCode())
	}
	return text
}

// age is how long ago something was, and how often.
const age = `(for )?\b(\d+[smhdy])+\b( \(x\d+ over (\d+[smhdy])+\))?`

// changing is what differs from run to run. The column after an age loses its
// place.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`((?i:resource ?version)"?: +"?)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`\S*/(LIVE|MERGED)-\d+/`), "$1/"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+]0000)`), "TIME"},
	{regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+]0000`), "TIME"},
	{regexp.MustCompile(`\b(AGE|Age|LAST SEEN|FIRST SEEN) +`), "$1  "},
	{regexp.MustCompile(`(?m)^( *-+ {2,})+-+$`), "  ----"}, // under a heading
	{regexp.MustCompile(age + ` +`), "AGE  "},
	{regexp.MustCompile(age), "AGE"},
}

// fixed is what stays: times in the manifests, and what is not an age.
var fixed = regexp.MustCompile(`2026-01-02|02 Jan 2026|^for `)

func normal(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if fixed.MatchString(found) {
				return found
			}
			return c.pattern.ReplaceAllString(found, c.with)
		})
	}
	return text
}

// TestKubectlWatch has kubectl watch, without a list before, what another does.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	program(t, "KUBECTL_BIN")
	c := newCluster(t, 1, nil)
	kubeconfig := c.nodes[0].Kubeconfig
	env := shellEnvironment(t, kubeconfig)
	for name, try := range map[string]struct {
		marker string // made before the watch, and changed until that sees it
		watch  string
		does   []string
		want   []string
	}{
		"pods": {
			"run marker --image=none", "pods",
			[]string{"create -f pod.yaml", "label pod web shape=round", "delete pod web"},
			[]string{
				"EVENT NAME READY STATUS RESTARTS AGE", "ADDED web 0/1 Pending 0 AGE", "MODIFIED web 0/1 Pending 0 AGE",
				"MODIFIED web 0/1 Terminating 0 AGE", "DELETED web 0/1 Terminating 0 AGE",
			},
		},
		"pods that leave the selection": {
			"run marker-red --image=none --labels=colour=red", "pods -l colour=red -L colour",
			[]string{"create -f pod.yaml", "label pod web colour=blue --overwrite", "label pod web colour=red --overwrite", "delete pod web"},
			[]string{
				"EVENT NAME READY STATUS RESTARTS AGE COLOUR", "ADDED web 0/1 Pending 0 AGE red", "DELETED web 0/1 Pending 0 AGE red", // as it was selected
				"ADDED web 0/1 Pending 0 AGE red", "MODIFIED web 0/1 Terminating 0 AGE red", "DELETED web 0/1 Terminating 0 AGE red",
			},
		},
		"objects": {
			"create namespace marker", `namespaces -o jsonpath={.type}{"\x20"}{.object.metadata.name}{"\x20"}{.object.metadata.labels.team}{"\n"}`,
			[]string{"create namespace shop", "label namespace shop team=sales"},
			[]string{"ADDED shop", "MODIFIED shop sales"},
		},
	} {
		runShell(t, env, "kubectl "+try.marker)
		words := strings.Fields(try.marker)
		markers := strings.Fields(try.watch)[0]
		made := words[slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "marker") })]
		args := strings.Fields("get --watch-only --output-watch-events " + try.watch)
		seen := (&script{t: t, dir: t.TempDir(), config: kubeconfig}).watch(c.nodes[0].cfg.Name, args...)
		var got []string
		note := func(line string) {
			line = strings.Join(strings.Fields(normal(line)), " ")
			if !strings.Contains(line, "marker") {
				got = append(got, line)
			}
		}
		until(t, func() error {
			runShell(t, env, fmt.Sprintf("kubectl annotate %s %s at=$(date +%%N) --overwrite", markers, made))
			select {
			case line := <-seen.lines:
				note(line)
				return nil
			default:
				return fmt.Errorf("%s: the watch does not start", name)
			}
		})
		for _, command := range try.does {
			runShell(t, env, "kubectl "+command)
		}
		until(t, func() error {
			for len(seen.lines) > 0 {
				note(<-seen.lines)
			}
			if len(got) < len(try.want) {
				return fmt.Errorf("%s: kubectl printed %q, want %q", name, got, try.want)
			}
			return nil
		})
		if !slices.Equal(got, try.want) {
			t.Errorf("%s: kubectl printed %q, want %q", name, got, try.want)
		}
	}
}
