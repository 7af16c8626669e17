package site

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kontiki/scripts/vm"
)

const (
	restartDelay = 300 * time.Millisecond // of the supervisor, after an end that nobody asked for
	stopPatience = 15 * time.Second       // a server gives its clients 10
	askTimeout   = 3 * time.Second
)

// Node is one server. It is supervised: when it ends without being told to, it is started
// again.
type Node struct {
	Name, URL string
	Machine   *vm.Machine
	LogFile   string

	site   *Site
	socket string

	mu       sync.Mutex
	first    string // faults commands before each start
	process  *vm.Process
	wanted   bool
	restarts int
}

// Start starts the server and goes on starting it until Kill, Stop or Hold.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = true
	if n.process != nil && !n.process.Ended() {
		return nil
	}
	return n.launch()
}

// launch needs the lock.
func (n *Node) launch() error {
	if n.site.cfg.OnStart != nil {
		n.site.cfg.OnStart(n.Name)
	}
	process, err := n.Machine.Start(n.command())
	if err != nil {
		return err
	}
	n.process = process
	go n.supervise(process)
	return nil
}

func (n *Node) supervise(process *vm.Process) {
	<-process.Exited()
	<-time.After(restartDelay)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wanted && n.process == process {
		n.restarts++
		if err := n.launch(); err != nil {
			n.note("cannot start it again: " + err.Error())
		}
	}
}

// note writes a line of the harness into the server's log.
func (n *Node) note(text string) {
	if log, err := os.OpenFile(n.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		fmt.Fprintf(log, "%s [CHAOS] %s\n", time.Now().Format(time.RFC3339Nano), text)
		log.Close()
	}
}

// release takes the process out of supervision.
func (n *Node) release() *vm.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	return n.process
}

// Kill ends the server by SIGKILL, and it stays down.
func (n *Node) Kill() {
	if p := n.release(); p != nil {
		n.note("SIGKILL")
		p.Kill()
	}
}

// Stop ends it by SIGTERM, and it stays down. False: it did not end by itself.
func (n *Node) Stop() bool {
	p := n.release()
	if p == nil {
		return true
	}
	n.note("SIGTERM")
	if p.Ask(stopPatience) {
		return true
	}
	if _, err := n.Fault("stacks"); err != nil { // into its log: what does it wait for?
		n.note("no stacks: " + err.Error())
	}
	p.Kill()
	return false
}

// Process is the present one.
func (n *Node) Process() *vm.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// Restarts is how often the server ended without being told to.
func (n *Node) Restarts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.restarts
}

// AtStart sets the faults commands that each start of the server begins with.
func (n *Node) AtStart(commands string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.first = commands
}

// Fault sends a command to the server's faults socket and returns what it answers.
func (n *Node) Fault(command string) (string, error) {
	n.note("faults: " + command)
	conn, err := net.DialTimeout("unix", n.socket, askTimeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", err
	}
	answer, ok := strings.CutPrefix(strings.TrimSpace(line), "ok")
	if !ok {
		return "", errors.New(line)
	}
	return strings.TrimSpace(answer), nil
}

// Data names a file below the server's data directory.
func (n *Node) Data(elem ...string) string {
	return filepath.Join(append([]string{n.Machine.Path("data")}, elem...)...)
}

// LogSince returns what the server has logged after offset, and where its log ends.
func (n *Node) LogSince(offset int64) (string, int64) {
	file, err := os.Open(n.LogFile)
	if err != nil {
		return "", offset
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() <= offset {
		return "", offset
	}
	text := make([]byte, info.Size()-offset)
	read, _ := file.ReadAt(text, offset)
	return string(text[:read]), offset + int64(read)
}
