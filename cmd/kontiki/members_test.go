package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/api"
)

// trio is three servers, processes of their own, that found a cluster.
type trio struct {
	t     testing.TB
	args  [][]string
	nodes []*process
}

func startTrio(t testing.TB) *trio {
	t.Helper()
	program(t, "KONTIKI_BIN")
	c, dir := &trio{t: t}, t.TempDir()
	var gossip []string
	for range 3 {
		gossip = append(gossip, freeAddress(t))
	}
	for i := range 3 {
		c.args = append(c.args, []string{
			"server", fmt.Sprintf("--name=n%d", i), "--data-dir=" + filepath.Join(dir, fmt.Sprint(i)), "--pki-dir=" + filepath.Join(dir, "pki"),
			"--api-addr=" + freeAddress(t), "--peer-addr=" + freeAddress(t), "--gossip-addr=" + gossip[i],
			"--peers=" + strings.Join(gossip, ","), "--bootstrap-expect=3",
		})
		c.nodes = append(c.nodes, c.begin(i))
	}
	for _, p := range c.nodes {
		p.waitAnswer("/readyz")
	}
	return c
}

func (c *trio) begin(i int) *process {
	_, api, _ := strings.Cut(c.args[i][4], "=")
	_, dir, _ := strings.Cut(c.args[i][2], "=")
	return spawn(c.t, dir, api, nil, c.args[i]...)
}

func (c *trio) kubeconfig(i int) string { return filepath.Join(c.nodes[i].dir, "admin.kubeconfig") }

// members runs the members command through node i.
func (c *trio) members(i int, args ...string) (stdout string, code int, stderr string) {
	c.t.Helper()
	cmd := kontiki(c.t, nil, append([]string{"members", "--kubeconfig", c.kubeconfig(i)}, args...)...)
	return run(c.t, cmd)
}

func run(t testing.TB, cmd *exec.Cmd) (stdout string, code int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer overdue.Stop()
	cmd.Wait()
	return out.String(), cmd.ProcessState.ExitCode(), errs.String()
}

// list waits until the list, as node i gives it, satisfies check.
func (c *trio) list(i int, check func(api.Members) error) (members api.Members) {
	c.t.Helper()
	until(c.t, func() error {
		out, code, stderr := c.members(i, "-o", "json")
		if code != 0 {
			return fmt.Errorf("exit code %d: %s", code, stderr)
		}
		members = api.Members{}
		if err := json.Unmarshal([]byte(out), &members); err != nil {
			c.t.Fatalf("%v: %s", err, out)
		}
		return check(members)
	})
	return members
}

// leader is the number of the node that leads.
func (c *trio) leader() (leader int) {
	c.t.Helper()
	c.list(0, func(m api.Members) error {
		if _, err := fmt.Sscanf(m.Leader, "n%d", &leader); err != nil {
			return fmt.Errorf("the leader is %q", m.Leader)
		}
		return nil
	})
	return leader
}

// TestMembersCommands goes through what an operator does, with real processes.
func TestMembersCommands(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	leader := c.leader()
	stay, leave := (leader+1)%3, (leader+2)%3
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	does := func(through int, want string, args ...string) {
		t.Helper()
		if out, code, stderr := c.members(through, args...); code != 0 || !regexp.MustCompile(want).MatchString(out) || stderr != "" {
			t.Fatalf("members %v: exit code %d, %q, %q; want %q", args, code, out, stderr, want)
		}
	}
	refuses := func(through int, want string, args ...string) {
		t.Helper()
		if out, code, stderr := c.members(through, args...); code != 1 || !regexp.MustCompile(`^error: `+want+`[^\n]*\n$`).MatchString(stderr) || out != "" {
			t.Fatalf("members %v: exit code %d, %q, %q; want %q", args, code, out, stderr, want)
		}
	}
	does(stay, `(?s)^NAME +ROLE +STATUS +ADDRESS +VERSION +APPLIED +LAG +CONTACT\nn0 .*\nn1 .*\nn2 [^\n]*\n$`)
	does(stay, `(?m)^`+name(leader)+` +leader +up +127\.0\.0\.1:\d+ +\S+ +\d+ +\d+ +0s$`, "list")
	does(stay, `^NAME.* PEER +GOSSIP\n`, "-o", "wide")
	does(stay, `(?m)^leader: `+name(leader)+`$`, "-o", "yaml")
	refuses(stay, `--output "xml": want wide, json or yaml`, "-o", "xml")
	refuses(stay, `remove takes the name of a node`, "remove")
	refuses(stay, `unknown command "frob"`, "frob")
	refuses(stay, `no such node in the cluster: n9`, "remove", "n9")
	refuses(stay, `the node is still running: stop it first: `+name(leave), "remove", name(leave))
	refuses(stay, `the node leads: transfer leadership first`, "demote", name(leader))
	does(leave, name(leave)+` has no vote any more; the voters are`, "demote", name(leave))
	refuses(leave, `the node has no vote: `+name(leave), "transfer-leadership", "--to", name(leave))

	c.nodes[leave].end(syscall.SIGTERM)
	c.nodes[leave] = c.begin(leave)
	c.nodes[leave].waitAnswer("/readyz")
	does(stay, name(stay)+` leads\n`, "transfer-leadership", "--to", name(stay))
	for _, m := range c.list(leave, func(m api.Members) error {
		if m.Leader != name(stay) {
			return fmt.Errorf("the leader is %q", m.Leader)
		}
		return nil
	}).Members {
		if m.Name == name(leave) && (m.Role != "nonvoter" || m.WantsVote) {
			t.Errorf("the demoted node is, after a restart, %+v", m)
		}
	}
	does(leave, `votes; the voters are \[n0 n1 n2\], of which 1 may fail`, "promote", name(leave))

	c.nodes[leave].end(syscall.SIGKILL)
	does(leader, name(leave)+` is removed; the voters are \[n\d n\d\], of which 0 may fail`, "remove", name(leave))
	refuses(leader, `no such node`, "remove", name(leave))
	refuses(leader, `the cluster would lose|the node leads|the node is still`, "remove", name(stay))
	c.nodes[leave] = c.begin(leave) // its data are good
	c.nodes[leave].waitAnswer("/readyz")
	c.list(leave, func(m api.Members) error {
		for _, m := range m.Members {
			if m.Role != "voter" || m.Lag > 1 {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
}

// TestGracefulStop stops every node, the leader first, and starts it again,
// while clients write and read. A request that fails is sent once more, to
// another node, and that must do: nothing fails twice, and nothing that failed
// has happened without an answer.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	c := startTrio(t)
	load := startLoad(c)
	load.advance(50)
	first := c.leader()
	for i := range 3 {
		node := (first + i) % 3
		c.nodes[node].end(syscall.SIGTERM)
		load.advance(50)
		c.nodes[node] = c.begin(node)
		c.nodes[node].waitAnswer("/readyz")
		load.advance(50)
	}
	load.stop()
}

// steadyLoad is clients that create, update and read leases, each on one node
// until that fails.
type steadyLoad struct {
	c       *trio
	clients []*kubernetes.Clientset
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	done    int     // guarded by mu
	retried int     // guarded by mu
	errs    []error // guarded by mu
}

func startLoad(c *trio) *steadyLoad {
	c.t.Helper()
	l := &steadyLoad{c: c}
	for i := range c.nodes {
		config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig(i))
		if err != nil {
			c.t.Fatal(err)
		}
		config.QPS, config.Timeout = -1, patience
		l.clients = append(l.clients, kubernetes.NewForConfigOrDie(config))
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i := range 6 {
		l.running.Go(func() { l.work(i) })
	}
	c.t.Cleanup(func() { l.cancel(); l.running.Wait() })
	return l
}

func (l *steadyLoad) work(worker int) {
	at := worker % len(l.clients)
	try := func(what string, do func(*kubernetes.Clientset) error) {
		if l.ctx.Err() != nil {
			return
		}
		err := do(l.clients[at])
		first := err
		if err != nil {
			at = (at + 1) % len(l.clients)
			err = do(l.clients[at])
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.done++
		if first != nil {
			l.retried++
		}
		if err != nil && l.ctx.Err() == nil {
			l.errs = append(l.errs, fmt.Errorf("worker %d, %s: %v; on the next node: %w", worker, what, first, err))
		}
	}
	for n := 0; l.ctx.Err() == nil; n++ {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("l-%d-%d", worker, n), Namespace: "default"}}
		try("create", func(client *kubernetes.Clientset) error {
			_, err := client.CoordinationV1().Leases("default").Create(l.ctx, lease, metav1.CreateOptions{})
			return err
		})
		try("get", func(client *kubernetes.Clientset) (err error) {
			lease, err = client.CoordinationV1().Leases("default").Get(l.ctx, fmt.Sprintf("l-%d-%d", worker, n), metav1.GetOptions{})
			return err
		})
		if lease == nil || lease.ResourceVersion == "" {
			continue
		}
		lease.Labels = map[string]string{"updated": "yes"}
		try("update", func(client *kubernetes.Clientset) error {
			_, err := client.CoordinationV1().Leases("default").Update(l.ctx, lease, metav1.UpdateOptions{})
			return err
		})
	}
}

// advance waits for so many more requests.
func (l *steadyLoad) advance(more int) {
	l.c.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.done
	}
	goal := count() + more
	until(l.c.t, func() error {
		if n := count(); n < goal {
			return fmt.Errorf("%d of %d requests are done", n, goal)
		}
		return nil
	})
}

func (l *steadyLoad) stop() {
	l.cancel()
	l.running.Wait()
	for _, err := range l.errs {
		l.c.t.Error(err)
	}
	l.c.t.Logf("%d requests, of which %d were sent to another node as well", l.done, l.retried)
}
