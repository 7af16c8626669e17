package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// execute is the command line without a process.
func execute(args ...string) (stdout string, err error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err = root.Execute()
	return out.String(), err
}

// eachCommand calls visit with every command that a person can type.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		eachCommand(below, visit)
	}
}

// TestMisuse: every command refuses a flag and a number of arguments that it does not know,
// before it asks anybody, says what is wrong, and tells with --help what it takes.
func TestMisuse(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null/none")
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		name := cmd.CommandPath()
		if out, err := execute(append(path, "--frob")...); err == nil || err.Error() != "unknown flag: --frob: see "+name+" --help" || out != "" {
			t.Errorf("%s --frob: %v, %s", name, err, out)
		}
		out, err := execute(append(path, "frob", "frob")...)
		if err == nil || !strings.Contains(err.Error(), `"frob"`) && !strings.Contains(err.Error(), "see "+name+" --help") || out != "" {
			t.Errorf("%s frob frob: %v, %s", name, err, out)
		}
		if out, err := execute(append(path, "--help")...); err != nil || !strings.Contains(out, "Usage:\n  "+name) || cmd.Short == "" {
			t.Errorf("%s --help: %v, %s", name, err, out)
		}
	})
}

// TestCertificatesOfNobody: an error is all that is printed.
func TestCertificatesOfNobody(t *testing.T) {
	out, err := execute("cert", "status", "--data-dir", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "there is no cluster in") || out != "" {
		t.Errorf("%v, %s", err, out)
	}
}

// answering is a kubeconfig that leads to a server which answers everything so, after it
// has read the request. Code 0 cuts the connection.
func answering(t *testing.T, code int, status string, asked *atomic.Int64) (config string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if _, err := io.Copy(io.Discard, r.Body); err != nil || code == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		fmt.Fprint(w, status)
	}))
	t.Cleanup(server.Close)
	config = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

const (
	answerUnknown = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"message":"outcome unknown"}`
	answerNoDisk  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"no room"}`
)

// TestChangeOfUnknownOutcome: whoever cannot know whether a member was removed is told where
// to look.
func TestChangeOfUnknownOutcome(t *testing.T) {
	_, err := execute("members", "remove", "n1", "--kubeconfig", answering(t, http.StatusGatewayTimeout, answerUnknown, new(atomic.Int64)))
	if err == nil || err.Error() != "outcome unknown; see kontiki members, and try again if it was not done" {
		t.Error(err)
	}
}

// TestSnapshotRefused: a restore or a backup that fails says what the server said, once, and
// what is left to do; where to look if nobody knows what was done.
func TestSnapshotRefused(t *testing.T) {
	const backup, look = "../../cluster/testdata/backup-v1", "; look whether the cluster has the old objects"
	save := filepath.Join(t.TempDir(), "backup")
	for _, row := range []struct {
		code         int
		status, want string
		args         []string
	}{
		{503, answerNoDisk, "no room", []string{"snapshot", "restore", "--yes", backup}},
		{504, answerUnknown, "outcome unknown" + look, []string{"snapshot", "restore", "--yes", backup}},
		{0, "", "EOF" + look, []string{"snapshot", "restore", "--yes", backup}},
		{503, answerNoDisk, "no room; --stale takes what the node has", []string{"snapshot", "save", save}},
	} {
		var asked atomic.Int64
		_, err := execute(append(row.args, "--kubeconfig", answering(t, row.code, row.status, &asked))...)
		if err == nil || !strings.Contains(err.Error(), row.want) || row.code == 503 && strings.Contains(err.Error(), look) || asked.Load() != 1 {
			t.Errorf("%v, answer %d, asked %d times: %v", row.args, row.code, asked.Load(), err)
		}
	}
}

// TestRefusedAtOnce: what cannot succeed, or would destroy something, is refused before
// anything is asked or written.
func TestRefusedAtOnce(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var asked atomic.Int64
	config, dir := answering(t, http.StatusOK, "{}", &asked), t.TempDir()
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	with := []string{"--kubeconfig", config}
	server := []string{"server", "--data-dir", filepath.Join(dir, "data"), "--token", "none"}
	for _, row := range []struct {
		want string
		args []string
	}{
		{`--join "10.0.0.1" is not host:port`, append(server, "--join", "10.0.0.1")},
		{`--join "https://10.0.0.1:6443" is not host:port`, append(server, "--join", "10.0.0.2:6443,https://10.0.0.1:6443")},
		{`--peers ":7302" is not host:port`, append(server, "--peers", ":7302")},
		{"set $KUBECONFIG or --kubeconfig", []string{"members"}},
		{`node name "a/b" must be`, append(with, "members", "remove", "a/b")},
		{`node name "" must be`, append(with, "members", "demote", "")},
		{"--user is empty", append(with, "kubeconfig", "--user", "")},
		{"has a context c, which would be lost", append(with, "proxy", "--listen", "127.0.0.1:0", "--write-kubeconfig", config)},
	} {
		if _, err := execute(row.args...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want %q", row.args, err, row.want)
		}
	}
	if after, err := os.ReadFile(config); err != nil || !bytes.Equal(before, after) || asked.Load() != 0 {
		t.Errorf("asked %d times, the kubeconfig is now\n%s", asked.Load(), after)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// TestSaveOnlyToFiles: a backup takes the place of an older one, of nothing else: a device
// or a directory.
func TestSaveOnlyToFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	err := writeWhole(pipe, func(io.Writer) error { return nil })
	if info, _ := os.Stat(pipe); err == nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v, %v", err, info.Mode())
	}
}
