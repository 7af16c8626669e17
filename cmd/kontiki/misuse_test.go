package main

import (
	"bytes"
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
