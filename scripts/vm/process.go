package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Command is what a machine runs.
type Command struct {
	Path string
	Args []string
	Env  []string // added to this process's environment
	Log  string   // file on the host that output is added to; none if empty
}

// Process is a command that was started on a machine. It is addressed by its pid alone, and
// only until its end has been seen, so that no signal reaches a stranger.
type Process struct {
	Pid   int
	Began time.Time

	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a command. It dies with the machine, and with this process.
func (m *Machine) Start(command Command) (*Process, error) {
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Dir = m.Inside()
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.SysProcAttr = attributes()
	if command.Log != "" {
		log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
	}
	if err := m.run(cmd.Start); err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	p := &Process{Pid: cmd.Process.Pid, Began: time.Now(), cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the status is in cmd.ProcessState
		close(p.exited)
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.processes = slices.DeleteFunc(m.processes, (*Process).Ended)
	m.processes = append(m.processes, p)
	return p, nil
}

// run calls start where the machine's processes must be started from.
func (m *Machine) run(start func() error) (err error) {
	if m.ns == nil {
		return start()
	}
	if nsErr := m.ns.do(func() { err = start() }); nsErr != nil {
		return nsErr
	}
	return err
}

// Run runs a command to its end and returns what it printed. The end of ctx kills it.
func (m *Machine) Run(ctx context.Context, command Command) (string, error) {
	out, err := os.CreateTemp("", "vm-run-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	command.Log = out.Name()
	p, err := m.Start(command)
	if err != nil {
		return "", err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
		p.Kill()
		err = ctx.Err()
	}
	printed, _ := os.ReadFile(out.Name())
	if err == nil && p.Status() != "exit status 0" {
		err = fmt.Errorf("%s: %s", command.Path, p.Status())
	}
	return string(printed), err
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Ended says whether it has.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Status says how it ended, "exit status 1" or "signal: killed"; "running" before.
func (p *Process) Status() string {
	if !p.Ended() {
		return "running"
	}
	return p.cmd.ProcessState.String()
}

// Signal sends one; to a process that has ended, nothing.
func (p *Process) Signal(signal syscall.Signal) {
	if !p.Ended() {
		_ = p.cmd.Process.Signal(signal) // it may end this moment
	}
}

// Pause stops the process without its knowing (SIGSTOP), as a hypervisor does; Resume goes
// on with it.
func (p *Process) Pause()  { p.Signal(syscall.SIGSTOP) }
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// Kill ends it without a chance to do anything (SIGKILL), and waits for it.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Stop asks it to end (SIGTERM) and waits; after patience it kills, and reports false.
func (p *Process) Stop(patience time.Duration) bool {
	ended := p.Ask(patience)
	p.Kill()
	return ended
}

// Ask is Stop that does not kill.
func (p *Process) Ask(patience time.Duration) bool {
	p.Signal(syscall.SIGTERM)
	p.Resume() // a paused process hears it only then
	select {
	case <-p.exited:
		return true
	case <-time.After(patience):
		return false
	}
}
