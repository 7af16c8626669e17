package life

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kontiki/scripts/vm"
)

const (
	apiPort = 6443
	// patience is for one step of a machine on a busy host; it is not what a step takes.
	patience = 60 * time.Second
)

// machine is a VM on which Kontiki is installed below its directory, which is its file tree.
type machine struct {
	*vm.Machine
	settings map[string]string
	sockets  string // a directory with a short name: that of a socket has an end
	service  *vm.Process
}

func (m *machine) api() string { return m.Address(apiPort) }
func (m *machine) data(file ...string) string {
	return m.Inside(filepath.Join(append([]string{"var/lib/kontiki"}, file...)...))
}

// install runs the script on the machine and returns what it says.
func (m *machine) install(ctx context.Context, bin string) (string, error) {
	out, err := m.script(ctx, "--bin", bin)
	if err != nil {
		return out, err
	}
	manual, err := m.unit("Documentation")
	if err != nil {
		return out, err
	}
	_, err = os.Stat(m.Inside(strings.TrimPrefix(manual, "file:")))
	return out, err
}

// script runs install.sh below the machine's tree.
func (m *machine) script(ctx context.Context, args ...string) (string, error) {
	script, err := filepath.Abs("../install.sh")
	if err != nil {
		return "", err
	}
	out, err := m.Run(ctx, vm.Command{Path: script, Args: append([]string{"--root", m.Inside()}, args...)})
	return out, explain(err, out)
}

// configure edits the settings that were installed, as a person would.
func (m *machine) configure() error {
	path := m.Inside("etc/kontiki/kontiki.env")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, value := range m.settings {
		line := regexp.MustCompile(`(?m)^#?` + name + `=.*$`)
		if len(line.FindAll(text, -1)) != 1 {
			return fmt.Errorf("%s has not one line with %s", path, name)
		}
		text = line.ReplaceAllLiteral(text, []byte(name+"="+value))
	}
	return os.WriteFile(path, text, 0o640)
}

// unit reads one entry of the unit that was installed.
func (m *machine) unit(name string) (string, error) {
	text, err := os.ReadFile(m.Inside("etc/systemd/system/kontiki.service"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("the unit has no %s", name)
	}
	return string(found[1]), nil
}

// environment reads the unit's EnvironmentFile.
func (m *machine) environment() ([]string, error) {
	file, err := m.unit("EnvironmentFile")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(m.Inside(file))
	if err != nil {
		return nil, err
	}
	var env []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			env = append(env, line)
		}
	}
	return env, nil
}

// start is `systemctl start kontiki`: it returns once the service has said READY=1.
func (m *machine) start() error {
	env, err := m.environment()
	if err != nil {
		return err
	}
	command, err := m.unit("ExecStart")
	if err != nil {
		return err
	}
	socket := filepath.Join(m.sockets, m.Name)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer os.Remove(socket)
	defer manager.Close()
	words := strings.Fields(command)
	m.service, err = m.Start(vm.Command{
		Path: m.Inside(words[0]), Args: words[1:], Env: append(env, "NOTIFY_SOCKET="+socket), Log: m.log(),
	})
	if err != nil {
		return err
	}
	return m.awaitReady(manager)
}

func (m *machine) log() string { return m.Inside("journal") }

func (m *machine) awaitReady(manager *net.UnixConn) error {
	message := make([]byte, 256)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := manager.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return err
		}
		n, _ := manager.Read(message)
		switch {
		case string(message[:n]) == "READY=1":
			return nil
		case n > 0:
			return fmt.Errorf("%s says %q, not READY=1", m.Name, message[:n])
		case m.service.Ended():
			return fmt.Errorf("%s: the service ended: %s\n%s", m.Name, m.service.Status(), m.lastLines())
		}
	}
	return fmt.Errorf("%s does not say READY=1\n%s", m.Name, m.lastLines())
}

// stop is `systemctl stop kontiki`: SIGTERM, and the unit's time to end by itself.
func (m *machine) stop() error {
	text, err := m.unit("TimeoutStopSec")
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(text + "s")
	if err != nil {
		return err
	}
	if !m.service.Stop(limit) || m.service.Status() != "exit status 0" {
		return fmt.Errorf("%s is told to stop: %s\n%s", m.Name, m.service.Status(), m.lastLines())
	}
	return nil
}

// destroy ends the machine and its tree.
func (m *machine) destroy() error {
	if err := m.Close(); err != nil {
		return err
	}
	return os.RemoveAll(m.Inside())
}

func (m *machine) lastLines() string {
	text, _ := os.ReadFile(m.log())
	lines := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}

// explain adds to an error what a command printed.
func explain(err error, out string) error {
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
	}
	return err
}

// until waits for a condition, which says what is still missing.
func until(ctx context.Context, t *testing.T, condition func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s not yet: %v", patience, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v: %v", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
