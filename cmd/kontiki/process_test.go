package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running kontiki server of its own.
type process struct {
	t      testing.TB
	dir    string
	url    string
	cmd    *exec.Cmd
	ended  chan struct{}
	stderr lockedBuffer
}

// program returns the path of a real program that make builds.
func program(t testing.TB, variable string) string {
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

// kontiki is the real program, with an environment that has no KONTIKI_
// variables but those given.
func kontiki(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program(t, "KONTIKI_BIN"), args...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "KONTIKI_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

// launch starts a server and returns once its API answers that it is ready. The
// arguments must have it use the data directory dir and the API address api.
func launch(t testing.TB, dir, api string, env []string, args ...string) *process {
	t.Helper()
	p := spawn(t, dir, api, env, args...)
	p.waitAnswer("/readyz")
	return p
}

// spawn is launch for a server that has to wait for others.
func spawn(t testing.TB, dir, api string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, url: "https://" + api, cmd: kontiki(t, env, args...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s says:\n%s", p.cmd, p.stderr.String())
		}
	})
	return p
}

// waitAnswer waits until the server answers on a public path that all is well.
func (p *process) waitAnswer(path string) {
	p.t.Helper()
	c := &testCluster{t: p.t, nodes: []*testNode{{Server: &Server{URL: p.url}}}}
	until(p.t, func() error {
		select {
		case <-p.ended:
			p.t.Fatalf("%s has ended: %s", p.cmd, p.stderr.String())
		default:
		}
		a, err := c.stranger(0, "").try("GET", path, nil)
		if err == nil && a.code != 200 {
			err = fmt.Errorf("answer %d: %s", a.code, a.body)
		}
		return err
	})
}

// end sends a signal and waits for the end.
func (p *process) end(signal syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end at signal %s", p.cmd, signal)
	}
	if signal == syscall.SIGTERM && p.cmd.ProcessState.ExitCode() != 0 {
		p.t.Errorf("%s ended with %s: %s", p.cmd, p.cmd.ProcessState, p.stderr.String())
	}
}

// kubectl runs the real one on this server and returns what it prints.
func (p *process) kubectl(args ...string) string {
	p.t.Helper()
	return kubectl(p.t, filepath.Join(p.dir, "admin.kubeconfig"), nil, args...)
}

func kubectl(t testing.TB, config string, env []string, args ...string) string {
	t.Helper()
	out, err := tryKubectl(t, config, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryKubectl(t testing.TB, config string, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "KUBECTL_BIN"), append([]string{"--kubeconfig", config}, args...)...)
	// A home of its own: kubectl caches discovery there.
	cmd.Env = append(os.Environ(), append(env, "HOME="+filepath.Dir(config))...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// freeAddress is one that nobody listens on, for now.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// lockedBuffer can be read while a process still writes to it.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
}

var _ io.Writer = (*lockedBuffer)(nil)

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// failure runs the real program, which must end by itself, and returns its exit
// code and standard error.
func failure(t testing.TB, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := kontiki(t, env, args...)
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer overdue.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}
