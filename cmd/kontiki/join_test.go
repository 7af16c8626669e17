package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/api"
	"kontiki/cluster"
	"kontiki/cluster/pki"
)

// machine is where a server of its own runs, again and again.
type machine struct {
	*process
	t                       *testing.T
	name, dir               string
	api, peer, gossip, home string
}

func newMachine(t *testing.T, name string) *machine {
	home := t.TempDir()
	return &machine{
		t: t, name: name, home: home, dir: filepath.Join(home, "data"),
		api: freeAddress(t), peer: freeAddress(t), gossip: freeAddress(t),
	}
}

func (m *machine) args(more ...string) []string {
	return append([]string{
		"server", "--name=" + m.name, "--data-dir=" + m.dir, "--api-addr=" + m.api, "--peer-addr=" + m.peer, "--gossip-addr=" + m.gossip,
	}, more...)
}

func (m *machine) spawn(env []string, more ...string) {
	m.t.Helper()
	m.process = spawn(m.t, m.dir, m.api, env, m.args(more...)...)
}

// refused starts the server, which must end with one line that has all of these
// parts, and leave nothing on the disk.
func (m *machine) refused(args []string, want ...string) {
	m.t.Helper()
	code, stderr := failure(m.t, nil, m.args(args...)...)
	lines := complaints(stderr)
	for _, part := range want {
		if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], part) {
			m.t.Errorf("%v: exit code %d, it does not end with one line about %q:\n%s", args, code, part, stderr)
		}
	}
	if left, err := os.ReadDir(m.dir); !errors.Is(err, os.ErrNotExist) {
		m.t.Errorf("%v: it left %v, %v", args, left, err)
	}
}

// run is a command of the real program with the kubeconfig of m.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := kontiki(m.t, []string{"KONTIKI_KUBECONFIG=" + filepath.Join(m.dir, adminFile)}, args...).Output()
	if err != nil {
		m.t.Fatalf("kontiki %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// waitsFor waits until m says with whom it waits for more founders, and looks at its status.
func (m *machine) waitsFor(with ...string) {
	m.t.Helper()
	until(m.t, func() error {
		if want := `found=["` + strings.Join(with, `", "`) + `"]`; !strings.Contains(m.stderr.String(), want) {
			return fmt.Errorf("it does not say that it waits with %v:\n%s", with, m.stderr.String())
		}
		return nil
	})
	var status api.Status
	if err := fromJSON([]byte(m.kubectl("get", "--raw", api.StatusPath)), &status); err != nil {
		m.t.Fatal(err)
	}
	if warnings := strings.Join(status.Warnings, "; "); !strings.Contains(warnings, m.name+" is in no cluster yet") || strings.Contains(warnings, "voters") {
		m.t.Errorf("while it waits, its status warns of %q", warnings)
	}
}

// waitVoters waits until node m counts n voters that are all alive.
func (m *machine) waitVoters(n int) {
	m.t.Helper()
	until(m.t, func() error {
		var members api.Members
		if err := fromJSON([]byte(m.kubectl("get", "--raw", api.MembersPath)), &members); err != nil {
			return err
		}
		voters := 0
		for _, one := range members.Members {
			if one.Alive && one.Role == cluster.RoleVoter {
				voters++
			}
		}
		if voters != n {
			return fmt.Errorf("%d voters, want %d: %+v", voters, n, members.Members)
		}
		return nil
	})
}

// TestClusterByToken is a cluster's life on machines that share nothing: three
// form it, two are added, some are refused, all but two start again.
func TestClusterByToken(t *testing.T) {
	t.Parallel()
	program(t, "KUBECTL_BIN")
	var m [6]*machine
	for i := range m {
		m[i] = newMachine(t, fmt.Sprintf("vm%d", i+1))
	}
	m[0].spawn(nil, "--bootstrap-expect=3")
	m[0].waitAnswer("/livez")
	m[0].waitsFor("vm1")
	token := m[0].run("token", "create")
	m[1].spawn(nil, "--join="+m[0].api, "--token="+token, "--bootstrap-expect=3")
	m[0].waitsFor("vm1", "vm2")
	m[2].spawn(nil, "--join="+m[0].api, "--token-file="+file(t, m[0].run("token", "create", "--data-dir="+m[0].dir)+"\n"), "--bootstrap-expect=3")
	for _, one := range m[:3] {
		one.waitAnswer("/readyz")
	}
	m[2].kubectl("create", "namespace", "formed")
	// One is let in by a member that was let in itself, the other asks one that is down first.
	m[3].spawn(nil, "--join="+m[1].api, "--token="+m[1].run("token", "create", "--ttl=1m"))
	m[4].spawn([]string{"KONTIKI_TOKEN=" + token, "KONTIKI_JOIN=" + freeAddress(t) + "," + m[2].api})
	m[0].waitVoters(5)
	m[4].kubectl("get", "namespace", "formed")

	checkKubeconfig(t, m[3], 5)
	checkRefused(t, m[:], token)

	// The first is gone for good, the fifth too. Second starts need no flags, and are
	// not disturbed by them.
	m[0].end(syscall.SIGKILL)
	m[1].end(syscall.SIGKILL)
	m[3].end(syscall.SIGTERM)
	m[1].spawn(nil)
	m[3].spawn(nil, "--join="+m[0].api, "--token="+oldToken(t, m[1].dir), "--bootstrap-expect=3")
	m[1].waitAnswer("/readyz")
	m[3].waitAnswer("/readyz")
	m[3].kubectl("delete", "namespace", "formed", "--wait=false")
	m[1].waitVoters(3)
	for _, one := range m[1:4] {
		var foundations int
		for line := range strings.Lines(one.stderr.String()) {
			if strings.Contains(line, "founded a cluster") {
				foundations++
			}
		}
		if foundations > 0 {
			t.Errorf("%s has founded a cluster", one.name)
		}
	}
}

// checkKubeconfig makes one through m and uses it on every node.
func checkKubeconfig(t *testing.T, m *machine, nodes int) {
	t.Helper()
	path := filepath.Join(m.home, "all.kubeconfig")
	m.run("kubeconfig", "--file="+path)
	m.run("kubeconfig", "--user=ada", "--group=staff,readers", "--ttl=1h", "--file="+path)
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Contexts) != nodes || len(config.AuthInfos) != 2 || config.CurrentContext != m.name {
		t.Errorf("it has %d contexts, %d users, and %q is current", len(config.Contexts), len(config.AuthInfos), config.CurrentContext)
	}
	for name := range config.Contexts {
		kubectl(t, path, nil, "--context", name, "--user", adminUser, "get", "namespace", "formed")
		if _, err := tryKubectl(t, path, nil, "--context", name, "--user", "ada", "get", "namespaces"); err == nil || !strings.Contains(err.Error(), `User "ada" cannot list`) {
			t.Errorf("%s: ada, who has no rights: %v", name, err)
		}
	}
	table := m.run("cert", "status")
	for _, part := range []string{"vm1    node ", "vm5    admin ", "CN=vm3,O=kontiki:nodes"} {
		if !strings.Contains(table, part) {
			t.Errorf("there is no %q in\n%s", part, table)
		}
	}
	if out := m.run("cert", "renew"); strings.Count(out, " certificates renewed") != nodes {
		t.Errorf("it says %s", out)
	}
	m.kubectl("get", "namespace", "formed")
}

// checkRefused has the last machine try with everything that is no good, and the
// one before it, which is then lost, with an empty disk.
func checkRefused(t *testing.T, m []*machine, token string) {
	t.Helper()
	outsider, lost := m[5], m[4]
	foreign, err := pki.EnsureCluster(filepath.Join(t.TempDir(), "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := foreign.NewToken(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	through := "--join=" + m[0].api
	hash, _, _ := strings.Cut(token, ".")
	_, rest, _ := strings.Cut(theirs, ".")
	outsider.refused([]string{through, "--token=" + theirs}, "join token of another cluster")
	outsider.refused([]string{through, "--token=" + hash + "." + rest}, "wrong signature")
	outsider.refused([]string{through, "--token=" + oldToken(t, m[0].dir)}, "has expired, at ", "make a new one with `kontiki token create`")
	outsider.refused([]string{through, "--token=" + token, "--name=vm2"}, "a node called vm2 is running at "+m[1].peer, "choose another --name")

	lost.end(syscall.SIGKILL)
	if err := os.RemoveAll(lost.dir); err != nil {
		t.Fatal(err)
	}
	until(t, func() error { // until the others have noticed that it is gone
		_, stderr := failure(t, nil, lost.args(through, "--token="+token)...)
		if !strings.Contains(stderr, "knows vm5 as a voter") {
			return errors.New(stderr)
		}
		return nil
	})
	lost.refused([]string{through, "--token=" + token}, "run `kontiki members remove vm5` against another node")
}

// oldToken is one that has expired, of the cluster in a data directory.
func oldToken(t *testing.T, dir string) string {
	t.Helper()
	root, err := pki.Load(pkiDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	root.Now = func() time.Time { return time.Now().Add(-2 * time.Hour) }
	token, _, err := root.NewToken(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestJoinWaits: a node may be started before the one that it is to join, and
// can be stopped while it waits.
func TestJoinWaits(t *testing.T) {
	c := newCluster(t, 1, nil)
	root, err := pki.Load(c.nodes[0].cfg.PKIDir)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := root.NewToken(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c.crash(0)
	cfg := c.config(1, 1)
	cfg.PKIDir, cfg.Join, cfg.Token = "", []string{c.nodes[0].cfg.APIAddr}, token
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Start(stopped, cfg, hclog.NewNullLogger()); !errors.Is(err, context.Canceled) {
		t.Fatalf("a node that was stopped while it waited: %v", err)
	}
	if _, err := os.Stat(cfg.DataDir); err == nil {
		t.Error("it left a data directory")
	}
	type started struct {
		server *Server
		err    error
	}
	done := make(chan started, 1)
	go func() {
		s, err := Start(t.Context(), cfg, c.logs.logger(cfg.Name))
		done <- started{s, err}
	}()
	c.start(0)
	select {
	case s := <-done:
		if s.err != nil {
			t.Fatal(s.err)
		}
		defer s.server.Abort()
		until(t, func() error { return s.server.Node.Ready(t.Context()) })
	case <-time.After(patience):
		t.Fatal("the node does not join")
	}
}

// TestJoinWithSharedFiles: nodes that share the CA's directory need no token.
func TestJoinWithSharedFiles(t *testing.T) {
	c := newCluster(t, 1, nil)
	cfg := c.config(1, 1)
	cfg.Join = []string{c.nodes[0].cfg.APIAddr}
	s, err := Start(t.Context(), cfg, c.logs.logger(cfg.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	until(t, func() error { return s.Node.Ready(t.Context()) })
	if leader, _, _ := s.Node.Leader(); leader != "n0" {
		t.Errorf("it follows %q", leader)
	}
}

// TestTokenCommand: offline, it says what is missing.
func TestTokenCommand(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := runCommand(t, &out, "token", "create", "--data-dir", dir); err == nil || !strings.Contains(err.Error(), "start the first node") {
		t.Errorf("without a cluster: %v", err)
	}
	root, err := pki.EnsureCluster(pkiDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := runCommand(t, &out, "token", "create", "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	if err := root.CheckToken(out.String()); err != nil {
		t.Errorf("%q: %v", out.String(), err)
	}
	if err := runCommand(t, &out, "token", "create", "--data-dir", dir, "--ttl=1000h"); err == nil || !strings.Contains(err.Error(), "720h") {
		t.Errorf("a token for ever: %v", err)
	}
}

// TestAddresses: where a node listens for others, if it is not told.
func TestAddresses(t *testing.T) {
	knows := t.TempDir()
	if err := cluster.RememberPeers(knows, []string{"127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		cfg  Config
		want []string // peer and gossip
	}{
		"alone on loopback":       {Config{APIAddr: "127.0.0.1:6443"}, []string{"127.0.0.1:0", "127.0.0.1:0"}},
		"alone everywhere":        {Config{APIAddr: ":6443"}, []string{"127.0.0.1:0", "127.0.0.1:0"}},
		"alone on an address":     {Config{APIAddr: "10.0.0.1:6443"}, []string{"10.0.0.1:7301", "10.0.0.1:7302"}},
		"a founder":               {Config{APIAddr: "127.0.0.1:6443", BootstrapExpect: 3}, []string{"127.0.0.1:7301", "127.0.0.1:7302"}},
		"a joiner":                {Config{APIAddr: "[fd00::1]:443", Join: []string{"a:1"}}, []string{"[fd00::1]:7301", "[fd00::1]:7302"}},
		"one that joined":         {Config{APIAddr: "127.0.0.1:6443", DataDir: knows}, []string{"127.0.0.1:7301", "127.0.0.1:7302"}},
		"with a peer address":     {Config{APIAddr: ":6443", PeerAddr: "10.0.0.1:1", Peers: []string{"a:1"}}, []string{"10.0.0.1:1", "10.0.0.1:7302"}},
		"everywhere, and joining": {Config{APIAddr: "0.0.0.0:6443", Join: []string{"a:1"}}, nil},
	} {
		cfg := DefaultConfig()
		cfg.APIAddr, cfg.PeerAddr, cfg.BootstrapExpect = try.cfg.APIAddr, try.cfg.PeerAddr, try.cfg.BootstrapExpect
		cfg.Join, cfg.Peers, cfg.DataDir = try.cfg.Join, try.cfg.Peers, try.cfg.DataDir
		if cfg.DataDir == "" {
			cfg.DataDir = t.TempDir()
		}
		err := cfg.Complete()
		if try.want == nil {
			if err == nil {
				t.Errorf("%s: %s %s", name, cfg.PeerAddr, cfg.GossipAddr)
			}
			continue
		}
		if err != nil || !slices.Equal([]string{cfg.PeerAddr, cfg.GossipAddr}, try.want) {
			t.Errorf("%s: %s %s, want %v: %v", name, cfg.PeerAddr, cfg.GossipAddr, try.want, err)
		}
	}
}
