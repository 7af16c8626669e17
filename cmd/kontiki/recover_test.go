package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// runServer is launch or spawn.
type runServer func(t testing.TB, dir, api string, env []string, args ...string) *process

// threeProcesses starts three real servers that are one cluster, below dir.
func threeProcesses(t *testing.T, dir string) (nodes [3]*process, start func(i int, run runServer) *process) {
	t.Helper()
	var peer, gossip [3]string
	for i := range nodes {
		peer[i], gossip[i] = freeAddress(t), freeAddress(t)
	}
	start = func(i int, run runServer) *process {
		data, api := filepath.Join(dir, fmt.Sprintf("n%d", i)), freeAddress(t)
		return run(t, data, api, nil, "server", "--name", filepath.Base(data), "--data-dir", data, "--pki-dir", filepath.Join(dir, "pki"),
			"--api-addr", api, "--peer-addr", peer[i], "--gossip-addr", gossip[i], "--peers", strings.Join(gossip[:], ","), "--bootstrap-expect", "3")
	}
	type started struct {
		i int
		p *process
	}
	up := make(chan started, 3)
	for i := range nodes { // each is ready only when a majority is there
		go func() { up <- started{i, start(i, launch)} }()
	}
	for range nodes {
		one := <-up
		nodes[one.i] = one.p
	}
	return nodes, start
}

// TestRecover loses the majority of three real servers, and goes on with the third: refused
// while it runs, while a majority is well, and while another has newer data.
func TestRecover(t *testing.T) {
	t.Parallel()
	program(t, "KONTIKI_BIN")
	dir := t.TempDir()
	nodes, start := threeProcesses(t, dir)
	recoverArgs := func(i int, more ...string) []string {
		return append([]string{"recover", "--data-dir", filepath.Join(dir, fmt.Sprintf("n%d", i)), "--pki-dir", filepath.Join(dir, "pki")}, more...)
	}
	refused := func(want string, args []string) {
		t.Helper()
		if out, err := runProgram(t, "", "", args...); err == nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%v: error %v, want %q in\n%s", args, err, want, out)
		}
	}
	nodes[1].kubectl("create", "namespace", "kept")
	refused("in use", recoverArgs(0, "--yes"))
	nodes[0].end(syscall.SIGTERM)
	// Which of the two reasons comes first depends on what it had not got yet.
	refused("3 of 3 voters are well, this node included: no majority is lost|n[12] at .* has newer data", recoverArgs(0, "--yes"))
	seen := uint64(0)
	for i := range 3 {
		seen = parse(nodes[1].kubectl("create", "namespace", fmt.Sprintf("later%d", i), "-o", "jsonpath={.metadata.resourceVersion}"))
	}
	nodes[2].end(syscall.SIGKILL)
	refused("node n1 at", recoverArgs(0, "--yes")) // it has newer data, and no majority
	nodes[1].end(syscall.SIGKILL)

	// Of the two with all data, one goes on, the other comes back too late.
	if err := os.RemoveAll(filepath.Join(dir, "n0")); err != nil {
		t.Fatal(err)
	}
	refused("not confirmed", recoverArgs(2))
	out, err := runProgram(t, "", "", recoverArgs(2, "--yes")...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "n2 is now the only member") || !strings.Contains(out, "no answer") {
		t.Errorf("recover says\n%s", out)
	}
	if saved, _ := filepath.Glob(filepath.Join(dir, "n2", "raft.before-recover-*", "raft.db")); len(saved) != 1 {
		t.Errorf("the old files are not kept: %v", saved)
	}
	survivor := start(2, launch)
	if got := parse(survivor.kubectl("get", "namespace", "later2", "-o", "jsonpath={.metadata.resourceVersion}")); got <= seen {
		t.Errorf("version %d after a recovery, clients had seen %d", got, seen)
	}
	survivor.kubectl("create", "namespace", "after")
	data, api := filepath.Join(dir, "fresh"), freeAddress(t)
	gossip := gossipOf(t, survivor)
	fresh := launch(t, data, api, nil, "server", "--name", "fresh", "--data-dir", data, "--pki-dir", filepath.Join(dir, "pki"),
		"--api-addr", api, "--peer-addr", freeAddress(t), "--gossip-addr", freeAddress(t), "--peers", gossip)
	fresh.kubectl("get", "namespace", "kept", "later2", "after")
	until(t, func() error {
		if out := mustRunProgram(t, filepath.Join(data, "admin.kubeconfig"), "members"); strings.Count(out, "voter") != 1 || !strings.Contains(out, "leader") {
			return fmt.Errorf("not two voters yet:\n%s", out)
		}
		return nil
	})
	comesBackTooLate(t, start(1, spawn), survivor)
}

// comesBackTooLate looks at a node that has the data of before the recovery: it takes no part,
// serves nobody, and holds up nobody.
func comesBackTooLate(t *testing.T, old, survivor *process) {
	t.Helper()
	until(t, func() error {
		if out := old.stderr.String(); !strings.Contains(out, "was founded on its own") {
			return fmt.Errorf("the node that comes back does not say why it is alone:\n%s", out)
		}
		return nil
	})
	if out := mustRunProgram(t, filepath.Join(survivor.dir, "admin.kubeconfig"), "members"); regexp.MustCompile(`(?m)^n1 +(voter|nonvoter)`).MatchString(out) {
		t.Errorf("n1 is a member again:\n%s", out)
	}
	survivor.kubectl("create", "namespace", "still")
	if out, err := tryKubectl(t, filepath.Join(old.dir, "admin.kubeconfig"), nil, "create", "namespace", "beside"); err == nil {
		t.Errorf("it takes writes: %s", out)
	}
	old.end(syscall.SIGTERM)
}

// gossipOf reads where a server gossips from its log.
func gossipOf(t *testing.T, p *process) string {
	t.Helper()
	_, after, ok := strings.Cut(p.stderr.String(), "gossip=")
	if !ok {
		t.Fatal("the server does not say where it gossips")
	}
	return strings.Fields(after)[0]
}
