package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

// TestChangeOfUnknownOutcome: whoever cannot know whether a member was removed is told where
// to look.
func TestChangeOfUnknownOutcome(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"message":"outcome unknown"}`)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := execute("members", "remove", "n1", "--kubeconfig", config)
	if err == nil || err.Error() != "outcome unknown; see kontiki members, and try again if it was not done" {
		t.Error(err)
	}
}
