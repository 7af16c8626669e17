// Package servers starts the servers that the scripts compare: a Kontiki cluster, and kube-apiserver on
// etcd, each as real processes on loopback with their data and logs below a directory of the caller's.
package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is what a program gets between SIGTERM and SIGKILL.
const stopTimeout = 20 * time.Second

// A Program is a process, and what it takes to start it again.
type Program struct {
	Name string
	path string
	log  string
	args []string
	cmd  *exec.Cmd // nil when it is down
}

// Programs are stopped together, the last that was started first.
type Programs struct{ All []*Program }

// Start runs a program with its output in dir/NAME.log.
func (p *Programs) Start(dir, name, path string, args ...string) (*Program, error) {
	program := &Program{Name: name, path: path, log: filepath.Join(dir, name+".log"), args: args}
	if err := program.Start(); err != nil {
		return nil, err
	}
	p.All = append(p.All, program)
	return program, nil
}

// Start starts a program that is down; it doesn't wait until it is of use.
func (p *Program) Start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is for us; we stop them
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w (make build and scripts/peer/build.sh build the programs)", p.Name, err)
	}
	p.cmd = cmd
	return nil
}

// Pid is 0 when the program is down.
func (p *Program) Pid() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Kill ends the program without a warning, and returns once it is gone.
func (p *Program) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

func (p *Program) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	killer.Stop()
	p.cmd = nil
}

// Stop ends all programs and returns once they are gone.
func (p *Programs) Stop() {
	for i := len(p.All) - 1; i >= 0; i-- {
		p.All[i].stop()
	}
}

// Pids are the processes that live.
func (p *Programs) Pids() (pids []int) {
	for _, program := range p.All {
		if pid := program.Pid(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// freePorts finds ports of loopback that nothing uses, neither for TCP nor for UDP.
func freePorts(n int) (ports []int, err error) {
	for len(ports) < n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		packets, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer packets.Close()
		ports = append(ports, port)
	}
	return ports, nil
}
