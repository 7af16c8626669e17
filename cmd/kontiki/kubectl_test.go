package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// script is a cluster of three processes that scripts/cluster.sh runs, as
// `make run` does.
type script struct {
	t      testing.TB
	dir    string
	config string // the kubeconfig with the contexts n1 to n3
}

func (s *script) run(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("cluster.sh %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *script) try(args ...string) (string, error) {
	cmd := exec.Command("../../scripts/cluster.sh", append([]string{"--dir", s.dir}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startScript starts the cluster on ports that nobody uses. They are below
// those that the kernel gives to others.
func startScript(t testing.TB) *script {
	t.Helper()
	s := &script{t: t, dir: filepath.Join(t.TempDir(), "cluster")}
	s.config = filepath.Join(s.dir, "kubeconfig")
	t.Cleanup(func() {
		s.run("down")
		if logs, _ := filepath.Glob(filepath.Join(s.dir, "n*", "log")); t.Failed() {
			for _, log := range logs {
				data, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, data)
			}
		}
	})
	port := 7000 + rand.IntN(4000)
	for !portsFree(port) {
		port = 7000 + rand.IntN(4000)
	}
	t.Logf("API port %d", port)
	t.Log(s.run("up", "--api-port", fmt.Sprint(port)))
	return s
}

// portsFree looks at all that three nodes need, see cluster.sh.
func portsFree(first int) bool {
	for node := range 3 {
		for _, base := range []int{first, first + 10000, first + 20000} {
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+node))
			if err != nil {
				return false
			}
			listener.Close()
		}
	}
	return true
}

// at runs kubectl on one node.
func (s *script) at(node string, args ...string) string {
	s.t.Helper()
	return kubectl(s.t, s.config, nil, append([]string{"--context", node}, args...)...)
}

// leader waits for a node to be one, and returns its name.
func (s *script) leader() (leader string) {
	s.t.Helper()
	until(s.t, func() error {
		status := s.run("status")
		found := regexp.MustCompile(`(?m)^(n\d) +running +ready +leader`).FindStringSubmatch(status)
		if found == nil {
			return fmt.Errorf("no leader: %s", status)
		}
		leader = found[1]
		return nil
	})
	return leader
}

const podManifest = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {colour: red}}
spec:
  containers:
  - {name: main, image: "web:1"}
`

// TestKubectl uses the real kubectl on three real processes, whose leader is
// killed in the middle of it.
func TestKubectl(t *testing.T) {
	t.Parallel()
	program(t, "KONTIKI_BIN")
	program(t, "KUBECTL_BIN")
	s := startScript(t)
	manifest := file(t, podManifest)
	s.steps([]step{
		{"n1", "version", `Server Version: v1\.\d+`},
		{"n1", "api-resources", `(?m)^leases +coordination\.k8s\.io/v1 +true +Lease`},
		{"n2", "explain pod.spec.containers.image", `(?s)FIELD: image.*Container image name`},
		{"n2", "create namespace shop", `namespace/shop created`},
		{"n3", "get namespaces", `(?m)^shop +Active`},
		{"n3", "apply -f " + manifest, `pod/web created`},
		{"n1", "apply -f " + manifest, `pod/web unchanged`},
		{"n2", "apply --server-side --force-conflicts -f " + manifest, `serverside-applied`},
		{"n3", "-n shop get pod web -o jsonpath={.metadata.labels.colour}", `^red$`},
		{"n2", "-n shop label pod web size=big", `pod/web labeled`},
		{"n1", `-n shop patch pod web -p {"metadata":{"annotations":{"patched":"yes"}}}`, `pod/web patched`},
		{"n3", "-n shop describe pod web", `(?s)patched: yes.*Image: +web:1`},
		{"n1", "-n shop run lone --image=lone:1", `pod/lone created`},
		{"n2", "-n shop get pods -l size=big -o name", `^pod/web\n$`},
	})

	// The watch is at a node that lives on.
	leader := s.leader()
	others := strings.Fields(strings.ReplaceAll("n1 n2 n3", leader, ""))
	watching := s.watch(others[0], "-n", "shop", "get", "pods", "-w", "--output-watch-events", "-L", "colour")
	watching.expect(`^ADDED +web .*red`)
	edit := func(node, from, to string) {
		t.Helper()
		out := kubectl(t, s.config, []string{"KUBE_EDITOR=sed -i s/" + from + "/" + to + "/"}, "--context", node, "-n", "shop", "edit", "pod", "web")
		if !strings.Contains(out, "pod/web edited") {
			t.Errorf("edit: %s", out)
		}
	}
	edit(leader, "red", "green")
	watching.expect(`^MODIFIED +web .*green`)
	t.Log(s.run("kill", strings.TrimPrefix(leader, "n")))
	edit(others[1], "green", "blue")
	watching.expect(`^MODIFIED +web .*blue`)
	s.steps([]step{
		{others[0], "-n shop get pod web -o jsonpath={.metadata.labels}", `"colour":"blue".*"size":"big"`},
		{others[1], "-n shop delete pod lone --now", `pod "lone" deleted`},
	})
	watching.expect(`^DELETED +lone`)
	if out, err := tryKubectl(t, s.config, nil, "--context", leader, "get", "namespaces"); err == nil {
		t.Errorf("a dead node answers %s", out)
	}
	s.run("start", strings.TrimPrefix(leader, "n"))
	s.steps([]step{
		{leader, "-n shop get pods -o name", `^pod/web\n$`},
		{leader, "-n shop label pod web colour=white --overwrite", `pod/web labeled`},
	})
	watching.expect(`^MODIFIED +web .*white`)

	// All of them, in good order.
	s.run("down")
	s.run("up")
	s.steps([]step{
		{"n2", "-n shop get pod web -o jsonpath={.metadata.labels.colour}", `^white$`},
		{"n3", "-n shop delete pods --all --now", `pod "web" deleted`},
		{"n1", "delete namespace shop --timeout=30s", `namespace "shop" deleted`},
		{"n2", "get namespaces -o name", `^namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n$`},
	})
}

// step is a kubectl command on a node, its words apart by spaces, and a pattern
// of what it must print.
type step struct{ node, command, want string }

func (s *script) steps(steps []step) {
	s.t.Helper()
	for _, step := range steps {
		if out := s.at(step.node, strings.Fields(step.command)...); !regexp.MustCompile(step.want).MatchString(out) {
			s.t.Errorf("%s: kubectl %s prints no %q:\n%s", step.node, step.command, step.want, out)
		}
	}
}

// watched is a kubectl that watches.
type watched struct {
	t     testing.TB
	lines chan string
}

func (s *script) watch(node string, args ...string) *watched {
	s.t.Helper()
	cmd := exec.Command(program(s.t, "KUBECTL_BIN"), append([]string{"--kubeconfig", s.config, "--context", node}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	w := &watched{t: s.t, lines: make(chan string, 100)}
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return w
}

// expect waits for a line like that.
func (w *watched) expect(pattern string) {
	w.t.Helper()
	var seen []string
	until(w.t, func() error {
		for {
			select {
			case line, ok := <-w.lines:
				if !ok {
					w.t.Fatalf("the watch has ended before %q; it printed %q", pattern, seen)
				}
				if seen = append(seen, line); regexp.MustCompile(pattern).MatchString(line) {
					return nil
				}
			default:
				return fmt.Errorf("the watch prints no %q, but %q", pattern, seen)
			}
		}
	})
}
