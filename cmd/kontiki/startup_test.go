package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

// TestStartErrors: a server that cannot start says why and what to do in one
// line, which is its last, and ends with exit code 1.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	program(t, "KONTIKI_BIN")
	used := startedData(t)
	running := launchSingle(t, filepath.Join(t.TempDir(), "running"))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	kubeconfig := filepath.Join(running.dir, "admin.kubeconfig")
	before := contents(t, kubeconfig)
	for name, try := range map[string]struct {
		env  []string
		args []string
		want string // a pattern of what is said
	}{
		"no data directory":          {nil, []string{"server"}, `--data-dir is required: name a directory`},
		"an unknown flag":            {nil, []string{"server", "--frob"}, `unknown flag: --frob: see kontiki server --help`},
		"an unknown command":         {nil, []string{"serve"}, `unknown command "serve": kontiki --help`},
		"an argument too many":       {nil, serve(t, "now"), `unknown command "now"`},
		"a bad duration":             {nil, serve(t, "--event-ttl=soon"), `invalid argument "soon" for "--event-ttl"`},
		"a short duration":           {nil, serve(t, "--event-ttl=1ms"), `--event-ttl 1ms: want at least 1s`},
		"a bad number":               {nil, serve(t, "--bootstrap-expect=x"), `invalid argument "x" for "--bootstrap-expect"`},
		"too many founders":          {nil, serve(t, "--bootstrap-expect=1000"), `bootstrap-expect is 1000, want 0 to`},
		"founding alone, joining":    {nil, serve(t, "--bootstrap-expect=1", "--join=127.0.0.1:1"), `set only one of them`},
		"no vote, no cluster":        {nil, serve(t, "--non-voter"), `--non-voter: .*name other nodes with --join or --peers`},
		"joining without a token":    {nil, serve(t, "--join=127.0.0.1:1"), `--join needs a --token: make one with .kontiki token create.`},
		"a token without joining":    {nil, serve(t, "--token=x"), `no --join with the API address`},
		"a word that is no token":    {nil, serve(t, "--join=127.0.0.1:1", "--token=guess"), `not a join token: copy the whole word`},
		"no join token file":         {nil, serve(t, "--join=127.0.0.1:1", "--token-file=none"), `cannot read --token-file: open none`},
		"every address, not alone":   {nil, []string{"server", "--data-dir=" + filepath.Join(t.TempDir(), "data"), "--api-addr=:0", "--bootstrap-expect=3"}, `set --peer-addr to the one that other nodes reach`},
		"a bad name":                 {nil, serve(t, "--name=Not_A_Name"), `node name "Not_A_Name" must be`},
		"a bad level":                {nil, serve(t, "--log-level=loud"), `--log-level "loud": want trace, debug, info, warn or error`},
		"a bad API address":          {nil, serve(t, "--api-addr=here"), `--api-addr "here" is not host:port`},
		"a bad peer address":         {nil, serve(t, "--peer-addr=here"), `--peer-addr "here" is not host:port`},
		"a bad gossip address":       {nil, serve(t, "--gossip-addr=here"), `gossip address "here" is not host:port`},
		"a bad variable":             {[]string{"KONTIKI_EVENT_TTL=soon"}, serve(t), `environment variable KONTIKI_EVENT_TTL: invalid argument "soon"`},
		"an address of another":      {nil, serve(t, "--api-addr=192.0.2.1:6443"), `cannot serve the API on 192\.0\.2\.1:6443: .*choose another --api-addr`},
		"an API port in use":         {nil, serve(t, "--api-addr="+busy.Addr().String()), `address already in use.*choose another --api-addr or stop`},
		"a peer port in use":         {nil, serve(t, "--peer-addr="+busy.Addr().String()), `address already in use.*--peer-addr`},
		"a gossip port in use":       {nil, serve(t, "--gossip-addr="+busy.Addr().String()), `address already in use.*--gossip-addr`},
		"no token file":              {nil, serve(t, "--token-auth-file=none"), `token file none: .*each line is token,user,uid`},
		"a bad token file":           {nil, serve(t, "--token-auth-file="+file(t, "one,two\n")), `each line is token,user,uid`},
		"data in use":                {nil, []string{"server", "--api-addr=127.0.0.1:0", "--data-dir=" + running.dir}, `in use by another process: .*stop the other kontiki, or use another --data-dir`},
		"another cluster's data":     {nil, []string{"server", "--api-addr=127.0.0.1:0", "--name=one", "--data-dir=" + copyOf(t, used), "--pki-dir=" + filepath.Join(t.TempDir(), "pki")}, `made by cluster [0-9a-f]+.*use another --data-dir, or the right`},
		"another node's data":        {nil, []string{"server", "--api-addr=127.0.0.1:0", "--name=two", "--data-dir=" + copyOf(t, used)}, `made by node one, this one is two: use another --data-dir, or the old name`},
		"a log cut short":            {nil, damagedData(t, used, func(log []byte) []byte { return log[:3*os.Getpagesize()] }), `data is damaged: .*raft\.db: .*kontiki members remove`},
		"a log of zeros":             {nil, damagedData(t, used, func(log []byte) []byte { return make([]byte, len(log)) }), `data is damaged: .*raft\.db: .*kontiki members remove`},
		"a log of noise":             {nil, damagedData(t, used, scramble), `data is damaged: .*raft\.db: .*kontiki members remove`},
		"a log that cannot be read":  {nil, unreadable(t, used), `(data is damaged|cannot open the log): .*raft\.db`},
		"a later release's data":     {nil, laterData(t, used), `has data format 3, this program knows 2: a later release of kontiki wrote it, run that one`},
		"a data directory in a file": {nil, []string{"server", "--api-addr=127.0.0.1:0", "--data-dir=" + filepath.Join(file(t, ""), "data")}, `not a directory`},
		"a key without its CA":       {nil, serve(t, "--pki-dir="+filepath.Dir(file(t, ""))), `exists, is not empty and has no ca\.crt`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stderr := failure(t, try.env, try.args...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			lines := complaints(stderr)
			if len(lines) != 1 || !strings.HasSuffix(stderr, lines[0]+"\n") || !regexp.MustCompile(`^error: .*`+try.want).MatchString(lines[0]) {
				t.Errorf("it does not end with one line like %q:\n%.2000s", try.want, stderr)
			}
			t.Log(strings.Join(lines, "\n"))
		})
	}
	if after := contents(t, kubeconfig); after != before {
		t.Error("a server that could not start has changed the kubeconfig of the one that runs")
	}
}

var logLine = regexp.MustCompile(`^\S+Z \[(INFO|WARN|DEBUG)\] `)

// complaints are the lines that are not in the ordinary course of things.
func complaints(stderr string) (lines []string) {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSuffix(line, "\n"); !logLine.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// serve is the arguments of a server that could start, with more.
func serve(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"server", "--data-dir=" + filepath.Join(t.TempDir(), "data"), "--api-addr=127.0.0.1:0"}, more...)
}

// startedData is the data directory of a server, called one, that has run.
func startedData(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	launchSingle(t, dir, "--name=one").end(syscall.SIGTERM)
	return dir
}

func launchSingle(t *testing.T, dir string, more ...string) *process {
	t.Helper()
	api := freeAddress(t)
	return launch(t, dir, api, nil, append([]string{"server", "--data-dir=" + dir, "--api-addr=" + api}, more...)...)
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return other
}

// damagedData is the arguments of a server whose log has been damaged.
func damagedData(t *testing.T, dir string, damage func([]byte) []byte) []string {
	t.Helper()
	dir = copyOf(t, dir)
	log := filepath.Join(dir, "raft", "raft.db")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, damage(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"server", "--api-addr=127.0.0.1:0", "--name=one", "--data-dir=" + dir}
}

// laterData says of itself that a later release has written it.
func laterData(t *testing.T, dir string) []string {
	t.Helper()
	dir = copyOf(t, dir)
	path := filepath.Join(dir, "node.json")
	text := strings.Replace(contents(t, path), `"format": 2`, `"format": 3`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"server", "--api-addr=127.0.0.1:0", "--name=one", "--data-dir=" + dir}
}

// scramble keeps the file's head, so that the damage shows later.
func scramble(log []byte) []byte {
	for i := 2 * os.Getpagesize(); i < len(log); i++ {
		log[i] = byte(i * 7)
	}
	return log
}

// unreadable has a directory where the log should be: to root every file is
// readable.
func unreadable(t *testing.T, dir string) []string {
	t.Helper()
	dir = copyOf(t, dir)
	log := filepath.Join(dir, "raft", "raft.db")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(log, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"server", "--api-addr=127.0.0.1:0", "--name=one", "--data-dir=" + dir}
}

func file(t *testing.T, contents string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSingleNode: a data directory is all that a node needs; its data outlive
// it, however it ends.
func TestSingleNode(t *testing.T) {
	t.Parallel()
	program(t, "KUBECTL_BIN")
	dir := filepath.Join(t.TempDir(), "data")
	for round, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		p := launchSingle(t, dir)
		p.kubectl("create", "namespace", fmt.Sprintf("round-%d", round))
		for before := range round {
			p.kubectl("get", "namespace", fmt.Sprintf("round-%d", before))
		}
		p.end(signal)
		if lines := complaints(p.stderr.String()); len(lines) > 0 {
			t.Errorf("round %d: it says\n%s", round, strings.Join(lines, "\n"))
		}
	}
}

// TestEnvironment sets every flag by its variable, and one by both: the command
// line wins.
func TestEnvironment(t *testing.T) {
	values := map[string]string{"string": "some/value", "int": "3", "duration": "2h0m0s", "bool": "true", "stringSlice": "[one,two]", "ipNet": "10.1.0.0/16", "portRange": "1000-2000"}
	cfg := DefaultConfig()
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	cfg.AddFlags(flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		t.Setenv("KONTIKI_"+strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")), strings.Trim(values[flag.Value.Type()], "[]"))
	})
	if err := flags.Parse([]string{"--name=from-flag"}); err != nil {
		t.Fatal(err)
	}
	if err := flagsFromEnv(flags); err != nil {
		t.Fatal(err)
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		want, known := values[flag.Value.Type()]
		if flag.Name == "name" {
			want = "from-flag"
		}
		if got := flag.Value.String(); !known || got != want {
			t.Errorf("%s, a %s, is %q, want %q", flag.Name, flag.Value.Type(), got, want)
		}
	})
}

// TestEnvironmentAlone starts a server that has all its settings from the
// environment.
func TestEnvironmentAlone(t *testing.T) {
	t.Parallel()
	dir, api := filepath.Join(t.TempDir(), "data"), freeAddress(t)
	tokens := file(t, "token-of-root,root,1,system:masters\n")
	p := launch(t, dir, api, []string{
		"KONTIKI_NAME=env-node", "KONTIKI_DATA_DIR=" + dir, "KONTIKI_API_ADDR=" + api, "KONTIKI_TOKEN_AUTH_FILE=" + tokens,
		"KONTIKI_LOG_LEVEL=warn", "KONTIKI_PKI_DIR=" + filepath.Join(t.TempDir(), "pki"),
	}, "server")
	c := &testCluster{t: t, nodes: []*testNode{{Server: &Server{URL: p.url}}}}
	var members struct{ Name string }
	a := c.stranger(0, "token-of-root").get("/kontiki/v1/members")
	if err := fromJSON(a.body, &members); err != nil || members.Name != "env-node" {
		t.Errorf("answer %d: %s", a.code, a.body)
	}
	p.end(syscall.SIGTERM)
	if log := p.stderr.String(); strings.Contains(log, "[INFO]") {
		t.Errorf("level warn logs more: %s", log)
	}
}

// TestVersion: the command prints one line.
func TestVersion(t *testing.T) {
	out, err := kontiki(t, nil, "version").Output()
	if err != nil || !regexp.MustCompile(`^kontiki \S+, Kubernetes API v1\.\d+\.\d+\n$`).Match(out) {
		t.Errorf("it prints %q, %v", out, err)
	}
}
