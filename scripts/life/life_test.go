package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/scripts/vm"
)

// lifetime bounds the whole test; it takes a fifth of it on two cores that do nothing else.
const lifetime = 5 * time.Minute

// site is the operator's view: the machines, and a desk from which to look at them.
type site struct {
	lab      *vm.Lab
	desk     *vm.Machine
	sockets  string
	kontiki  string // the program
	kubectl  string
	machines []*machine // alive
}

// TestLife is one story: each part starts where the one before ended.
func TestLife(t *testing.T) {
	s := openSite(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), lifetime, errors.New("the test's time is over"))
	defer cancel()
	var before *estate
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"form", func(t *testing.T) { s.form(ctx, t) }},
		{"grow", func(t *testing.T) { s.grow(ctx, t) }},
		{"replace", func(t *testing.T) { s.replace(ctx, t) }},
		{"upgrade", func(t *testing.T) { s.upgrade(ctx, t) }},
		{"back up", func(t *testing.T) { before = s.backUp(ctx, t) }},
		{"destroy", func(t *testing.T) { s.destroy(ctx, t) }},
		{"restore", func(t *testing.T) { s.restore(ctx, t, before) }},
	} {
		if !t.Run(part.name, part.run) {
			s.tell(t)
			t.FailNow()
		}
	}
}

func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{kontiki: program(t, "KONTIKI_BIN"), kubectl: program(t, "KUBECTL_BIN")}
	dir := t.TempDir()
	var err error
	if s.sockets, err = os.MkdirTemp("", "life"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.sockets) })
	if s.lab, err = vm.Open(vm.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.lab.Close() })
	if s.lab.Shared != nil {
		t.Logf("the machines share the loopback device: %v", s.lab.Shared)
	}
	if s.desk, err = s.lab.Add("desk"); err != nil {
		t.Fatal(err)
	}
	return s
}

// program is one that make builds.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set: make test sets it", variable)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: make build", variable, err)
	}
	return path
}

// tell shows the ends of the logs.
func (s *site) tell(t *testing.T) {
	for _, m := range s.machines {
		t.Logf("the log of %s ends with\n%s", m.Name, m.lastLines())
	}
}

// add makes a machine, installs and configures it, and starts the service.
func (s *site) add(ctx context.Context, t *testing.T, name, bin string, settings map[string]string) *machine {
	t.Helper()
	on, err := s.lab.Add(name)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{Machine: on, sockets: s.sockets, settings: map[string]string{
		"KONTIKI_NAME": name, "KONTIKI_DATA_DIR": on.Inside("var/lib/kontiki"), "KONTIKI_API_ADDR": on.Address(apiPort),
	}}
	if s.lab.Shared != nil { // a node alone on loopback would keep its ports to itself
		m.settings["KONTIKI_PEER_ADDR"], m.settings["KONTIKI_GOSSIP_ADDR"] = on.Address(7301), on.Address(7302)
	}
	maps.Copy(m.settings, settings)
	if out, err := m.install(ctx, bin); err != nil || !strings.Contains(out, "installed") {
		t.Fatalf("install.sh: %v: %s", err, out)
	}
	if err := errors.Join(m.configure(), m.start()); err != nil {
		t.Fatal(err)
	}
	s.machines = append(s.machines, m)
	return m
}

// join adds machines that enter the cluster with a new token.
func (s *site) join(ctx context.Context, t *testing.T, names ...string) {
	t.Helper()
	member := s.machines[0]
	token := s.on(ctx, t, member.Machine, s.kontiki, nil, "token", "create", "--data-dir", member.data())
	for _, name := range names {
		s.add(ctx, t, name, s.kontiki, map[string]string{"KONTIKI_JOIN": member.api(), "KONTIKI_TOKEN": strings.TrimSpace(token)})
	}
	s.awaitVoters(ctx, t)
	s.renewConfig(ctx, t)
}

// on runs a program on a machine, which must succeed.
func (s *site) on(ctx context.Context, t *testing.T, m *vm.Machine, path string, env []string, args ...string) string {
	t.Helper()
	out, err := m.Run(ctx, vm.Command{Path: path, Args: args, Env: append(env, "HOME="+m.Inside())})
	if err != nil {
		t.Fatalf("%s on %s: %v", strings.Join(args, " "), m.Name, explain(err, out))
	}
	return out
}

// config is the operator's kubeconfig, on the desk.
func (s *site) config() string { return s.desk.Inside("kubeconfig") }

// run and ask are the operator at the desk.
func (s *site) run(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	return s.on(ctx, t, s.desk, s.kontiki, []string{"KUBECONFIG=" + s.config()}, args...)
}

func (s *site) ask(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	return s.on(ctx, t, s.desk, s.kubectl, []string{"KUBECONFIG=" + s.config()}, args...)
}

// refused is run for a command that must fail, with a text that says why.
func (s *site) refused(ctx context.Context, t *testing.T, why string, args ...string) {
	t.Helper()
	out, err := s.desk.Run(ctx, vm.Command{Path: s.kontiki, Args: args, Env: []string{"KUBECONFIG=" + s.config()}})
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, why) {
		t.Errorf("kontiki %s: %v, %s: want exit status 1 and %q", strings.Join(args, " "), err, out, why)
	}
}

// renewConfig makes the operator's kubeconfig, with a context for each node.
func (s *site) renewConfig(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := os.Remove(s.config()); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	admin := "KUBECONFIG=" + s.machines[0].data("admin.kubeconfig")
	s.on(ctx, t, s.desk, s.kontiki, []string{admin}, "kubeconfig", "-f", s.config())
}

// member is a row of `kontiki members -o json`.
type member struct {
	Name, Role, Version string
	Leader, Reachable   bool
	Lag                 uint64
}

func (s *site) members(ctx context.Context, through *machine) ([]member, error) {
	out, err := s.desk.Run(ctx, vm.Command{
		Path: s.kontiki, Args: []string{"members", "-o", "json"},
		Env: []string{"KUBECONFIG=" + through.data("admin.kubeconfig")},
	})
	if err != nil {
		return nil, explain(err, out)
	}
	var list struct{ Members []member }
	return list.Members, json.Unmarshal([]byte(out), &list)
}

// awaitVoters waits until exactly the machines that live are members, well and with a vote.
func (s *site) awaitVoters(ctx context.Context, t *testing.T) {
	t.Helper()
	until(ctx, t, func() error {
		members, err := s.members(ctx, s.machines[0])
		if err != nil {
			return err
		}
		well, leaders := 0, 0
		for _, m := range members {
			if m.Role == "voter" && m.Reachable && m.Lag == 0 {
				well++
			}
			if m.Leader {
				leaders++
			}
		}
		if len(members) != len(s.machines) || well != len(members) || leaders != 1 {
			return fmt.Errorf("want %d voters and a leader, have %+v", len(s.machines), members)
		}
		return nil
	})
}

// clients are client-go's, one a node, from the desk.
func (s *site) clients(t *testing.T, config string) (clients []kubernetes.Interface) {
	t.Helper()
	base, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		t.Fatal(err)
	}
	base.Dial, base.QPS = s.desk.Dial, -1
	for _, m := range s.machines {
		at := *base
		at.Host = "https://" + m.api()
		client, err := kubernetes.NewForConfig(&at)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	return clients
}

// estate is what a cluster had, and what is left of it: a backup, the CA, a kubeconfig.
type estate struct {
	objects map[string]string // kind and name to uid
	version uint64            // the highest that was seen
	backup  string
	pki     string
	config  string
}

// inventory lists objects that clients made, and the highest version of any.
func (s *site) inventory(ctx context.Context, t *testing.T) (objects map[string]string, versions []uint64) {
	t.Helper()
	out := s.ask(ctx, t, "get", "pods,leases,services,namespaces", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{"\n"}{end}`)
	objects = make(map[string]string)
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) != 4 {
			t.Fatalf("kubectl prints %q", line)
		}
		objects[words[0]+" "+words[1]] = words[2]
		version, err := strconv.ParseUint(words[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	return objects, versions
}

func (s *site) form(ctx context.Context, t *testing.T) {
	s.add(ctx, t, "vm1", s.kontiki, nil)
	s.join(ctx, t, "vm2", "vm3")
	s.ask(ctx, t, "--context", "vm2", "run", "first", "--image=nginx")
	s.ask(ctx, t, "--context", "vm3", "get", "pod", "first")
	s.run(ctx, t, "status")
}

func (s *site) grow(ctx context.Context, t *testing.T) {
	s.join(ctx, t, "vm4", "vm5")
	s.ask(ctx, t, "--context", "vm5", "get", "pod", "first")
}

// replace loses the leader with its disk, and gives its place to a machine with another name.
func (s *site) replace(ctx context.Context, t *testing.T) {
	members, err := s.members(ctx, s.machines[0])
	if err != nil {
		t.Fatal(err)
	}
	leads := slices.IndexFunc(members, func(m member) bool { return m.Leader })
	name := members[leads].Name
	s.refused(ctx, t, "", "members", "remove", name)
	i := slices.IndexFunc(s.machines, func(m *machine) bool { return m.Name == name })
	lost := s.machines[i]
	s.machines = slices.Delete(s.machines, i, i+1)
	if err := lost.destroy(); err != nil {
		t.Fatal(err)
	}
	load := startLoad(ctx, "replace", s.clients(t, s.config()))
	until(ctx, t, func() error {
		members, err := s.members(ctx, s.machines[0])
		if err == nil && !slices.ContainsFunc(members, func(m member) bool { return m.Leader && m.Name != name }) {
			err = fmt.Errorf("nobody leads in the place of %s: %+v", name, members)
		}
		return err
	})
	s.run(ctx, t, "members", "remove", name, "--context", s.machines[0].Name)
	s.join(ctx, t, "vm6")
	load.end(ctx, t)
	t.Logf("%s was lost", name)
}

// upgrade installs a later release, machine by machine, and clients lose nothing.
func (s *site) upgrade(ctx context.Context, t *testing.T) {
	later, version := laterRelease(t, s.kontiki)
	load := startLoad(ctx, "upgrade", s.clients(t, s.config()))
	for i, m := range s.machines {
		config, err := os.ReadFile(m.Inside("etc/kontiki/kontiki.env"))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := m.install(ctx, later); err != nil || !strings.Contains(out, "kept") {
			t.Fatalf("install.sh: %v: %s", err, out)
		}
		if after, err := os.ReadFile(m.Inside("etc/kontiki/kontiki.env")); err != nil || string(after) != string(config) {
			t.Fatalf("the upgrade changes the settings of %s: %v", m.Name, err)
		}
		if err := errors.Join(m.stop(), m.start()); err != nil {
			t.Fatal(err)
		}
		s.awaitVersion(ctx, t, version, i+1)
	}
	load.end(ctx, t)
}

// awaitVersion waits until this many machines, and all well, show a version.
func (s *site) awaitVersion(ctx context.Context, t *testing.T, version string, count int) {
	t.Helper()
	until(ctx, t, func() error {
		members, err := s.members(ctx, s.machines[(count)%len(s.machines)])
		if err != nil {
			return err
		}
		have := 0
		for _, m := range members {
			if !m.Reachable || m.Role != "voter" {
				return fmt.Errorf("%s is not well: %+v", m.Name, m)
			}
			if m.Version == version {
				have++
			}
		}
		if have != count {
			return fmt.Errorf("want %d of version %s, have %+v", count, version, members)
		}
		return nil
	})
}

// backUp takes what an operator takes out of the house.
func (s *site) backUp(ctx context.Context, t *testing.T) *estate {
	e := &estate{backup: s.desk.Inside("backup.kontiki"), pki: s.desk.Inside("pki"), config: s.desk.Inside("config-of-before")}
	e.objects, _ = s.inventory(ctx, t)
	if len(e.objects) < 20 {
		t.Errorf("the load has left %d objects only", len(e.objects))
	}
	s.run(ctx, t, "snapshot", "save", e.backup)
	if out := s.run(ctx, t, "snapshot", "inspect", e.backup); !strings.Contains(out, "pods") {
		t.Errorf("inspect says %s", out)
	}
	s.ask(ctx, t, "create", "namespace", "after-the-backup")
	_, versions := s.inventory(ctx, t)
	e.version = slices.Max(versions)
	if err := os.CopyFS(e.pki, os.DirFS(s.machines[0].data("cluster"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.config(), e.config); err != nil {
		t.Fatal(err)
	}
	return e
}

// destroy ends one machine as an operator does, and all as a fire does.
func (s *site) destroy(ctx context.Context, t *testing.T) {
	s.uninstall(ctx, t, s.machines[0])
	for _, m := range s.machines {
		if err := m.destroy(); err != nil {
			t.Fatal(err)
		}
	}
	s.machines = nil
}

// uninstall keeps what a machine knows, unless it is told to purge.
func (s *site) uninstall(ctx context.Context, t *testing.T, m *machine) {
	t.Helper()
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	kept := []string{m.data("node.json"), m.Inside("etc/kontiki/kontiki.env")}
	for _, flag := range []string{"--uninstall", "--purge"} {
		if out, err := m.script(ctx, "--uninstall", flag); err != nil {
			t.Fatalf("install.sh %s: %v: %s", flag, err, out)
		}
		for _, file := range kept {
			if _, err := os.Stat(file); (err == nil) != (flag == "--uninstall") {
				t.Errorf("%s after %s: %v", file, flag, err)
			}
		}
	}
	left, err := filepath.Glob(m.Inside("usr/local/*/kontiki")) // its program
	if more, _ := filepath.Glob(m.Inside("etc/systemd/system/*")); err != nil || len(left)+len(more) > 0 {
		t.Errorf("left are %v %v, %v", left, more, err)
	}
}

// restore forms a cluster of three at once on new machines, under the old CA, and restores.
func (s *site) restore(ctx context.Context, t *testing.T, before *estate) {
	settings := map[string]string{"KONTIKI_BOOTSTRAP_EXPECT": "3", "KONTIKI_PKI_DIR": s.desk.Inside("pki")}
	first := s.add(ctx, t, "new1", s.kontiki, settings)
	token := s.on(ctx, t, first.Machine, s.kontiki, nil, "token", "create", "--pki-dir", before.pki)
	for _, name := range []string{"new2", "new3"} {
		s.add(ctx, t, name, s.kontiki, map[string]string{
			"KONTIKI_BOOTSTRAP_EXPECT": "3", "KONTIKI_JOIN": first.api(), "KONTIKI_TOKEN": strings.TrimSpace(token),
		})
	}
	s.awaitVoters(ctx, t)
	s.renewConfig(ctx, t)
	s.refused(ctx, t, "not confirmed", "snapshot", "restore", before.backup)
	if objects, _ := s.inventory(ctx, t); objects["Pod default/first"] != "" {
		t.Error("a restore that was not confirmed has restored")
	}
	s.run(ctx, t, "snapshot", "restore", "--yes", before.backup)
	objects, versions := s.inventory(ctx, t)
	if !maps.Equal(objects, before.objects) {
		t.Errorf("restored are %v, saved were %v", objects, before.objects)
	}
	if slices.Min(versions) <= before.version {
		t.Errorf("versions from %d on, and %d was seen before", slices.Min(versions), before.version)
	}
	s.watches(ctx, t, before, slices.Max(versions))
}

// watches tries clients from before on every node: one that goes on from the version that it
// knows is told that it is gone, one that lists anew hears of what comes.
func (s *site) watches(ctx context.Context, t *testing.T, before *estate, now uint64) {
	t.Helper()
	for i, client := range s.clients(t, before.config) {
		old := metav1.ListOptions{ResourceVersion: strconv.FormatUint(before.version, 10)}
		if err := firstEvent(ctx, client, old, nil); !apierrors.IsGone(err) && !apierrors.IsResourceExpired(err) {
			t.Errorf("a watch from before on node %d: %v, want 410", i, err)
		}
		fresh := metav1.ListOptions{ResourceVersion: strconv.FormatUint(now, 10)}
		change := func() { s.ask(ctx, t, "label", "pod", "first", fmt.Sprintf("seen-by=%d", i), "--overwrite") }
		if err := firstEvent(ctx, client, fresh, change); err != nil {
			t.Errorf("a watch from now on node %d: %v", i, err)
		}
	}
}

// firstEvent is nil if a watch of pods starts, and brings a change.
func firstEvent(ctx context.Context, client kubernetes.Interface, from metav1.ListOptions, change func()) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := client.CoreV1().Pods("default").Watch(ctx, from)
	if err != nil {
		return err
	}
	defer events.Stop()
	if change != nil {
		change()
	}
	event, ok := <-events.ResultChan()
	switch {
	case !ok:
		return errors.New("it ends without an event")
	case event.Type == watch.Error:
		return apierrors.FromObject(event.Object)
	}
	return nil
}
