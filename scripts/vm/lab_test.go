package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the program of TestNothingOutlivesAKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("VM_TEST_LAB"); dir != "" {
		if err := beKilled(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// openLab skips where machines cannot be isolated, and says why.
func openLab(t *testing.T, names ...string) []*Machine {
	t.Helper()
	lab, err := Open(Config{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lab.Close() })
	if lab.Shared != nil {
		t.Skip(lab.Shared)
	}
	return add(t, lab, names...)
}

func add(t *testing.T, lab *Lab, names ...string) (machines []*Machine) {
	t.Helper()
	for _, name := range names {
		m, err := lab.Add(name)
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, m)
	}
	return machines
}

// echo answers lines on a machine's port 7000 with the same line.
func echo(t *testing.T, m *Machine) {
	t.Helper()
	listener, err := m.Listen("tcp", m.Address(7000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); io.Copy(conn, conn) }()
		}
	}()
}

func dial(t *testing.T, from, to *Machine, timeout time.Duration) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", to.Address(7000))
	if conn != nil {
		t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

func say(conn net.Conn, text string, timeout time.Duration) error {
	conn.SetDeadline(time.Now().Add(timeout))
	if _, err := fmt.Fprintln(conn, text); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != text+"\n" {
		err = fmt.Errorf("said %q, heard %q", text, line)
	}
	return err
}

func TestMachinesAndTheirNetwork(t *testing.T) {
	m := openLab(t, "a", "b")
	a, b := m[0], m[1]
	echo(t, b)
	conn, err := dial(t, a, b, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 100_000)
	if err := say(conn, long, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if host, _, _ := net.SplitHostPort(conn.LocalAddr().String()); host != a.Addr.String() {
		t.Errorf("connected from %s, want %s", host, a.Addr)
	}

	network := a.lab.Network
	network.Set(b.Addr, a.Addr, Rule{Drop: true})
	if err := say(conn, "one way", 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("through a network that is cut: %v", err)
	}
	if _, err := dial(t, a, b, 300*time.Millisecond); err == nil {
		t.Error("a connection is made through a network that is cut")
	}
	network.Heal()
	conn, err = dial(t, a, b, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	network.Set(b.Addr, a.Addr, Rule{Protocol: TCP, Port: 7000, Reset: true})
	if err := say(conn, "cut", 5*time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
}

func TestProcesses(t *testing.T) {
	for _, loopback := range []bool{false, true} {
		t.Run(fmt.Sprintf("loopback=%v", loopback), func(t *testing.T) {
			lab, err := Open(Config{Dir: t.TempDir(), Loopback: loopback})
			if err != nil {
				t.Fatal(err)
			}
			defer lab.Close()
			if lab.Shared != nil && !loopback {
				t.Skip(lab.Shared)
			}
			tryProcesses(t, add(t, lab, "a")[0])
		})
	}
}

func tryProcesses(t *testing.T, m *Machine) {
	out, err := m.Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "pwd; echo $X; exit 3"}, Env: []string{"X=y"}})
	if out != m.Inside()+"\ny\n" || err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("run: %q, %v", out, err)
	}
	sleep := func() *Process {
		p, err := m.Start(Command{Path: "/bin/sleep", Args: []string{"1000"}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := sleep()
	if p.Pause(); p.Ended() || p.Status() != "running" {
		t.Error("a paused process has ended")
	}
	if !p.Stop(5*time.Second) || p.Status() != "signal: terminated" {
		t.Errorf("a paused process that is told to stop: %s", p.Status())
	}
	p = sleep()
	if p.Kill(); p.Status() != "signal: killed" {
		t.Errorf("a killed process: %s", p.Status())
	}
	p = sleep()
	m.Close()
	if !p.Ended() {
		t.Error("a process outlives its machine")
	}
}

func TestFullDisk(t *testing.T) {
	m := openLab(t, "a")[0]
	if err := m.Limit(16 << 20); err != nil {
		t.Fatal(err)
	}
	if err := m.Fill(); err != nil {
		t.Fatal(err)
	}
	more := Command{Path: "/bin/dd", Args: []string{"if=/dev/zero", "of=more", "bs=64k", "count=1", "conv=fsync"}}
	if out, err := m.Run(t.Context(), more); !strings.Contains(out, "No space left") {
		t.Errorf("a process writes to a full disk: %s, %v", out, err)
	}
	if err := m.Empty(); err != nil {
		t.Fatal(err)
	}
	if out, err := m.Run(t.Context(), more); err != nil {
		t.Errorf("after the ballast is gone: %s, %v", out, err)
	}
	if entries, err := os.ReadDir(m.Inside()); err != nil || len(entries) > 0 {
		t.Errorf("the disk is seen outside of its machine: %v, %v", entries, err)
	}
}

// beKilled makes a machine with a disk and a process, says the process's pid, and waits.
func beKilled(dir string) error {
	lab, err := Open(Config{Dir: dir})
	if err != nil {
		return err
	}
	m, err := lab.Add("a")
	if err != nil {
		return err
	}
	if err := m.Limit(8 << 20); err != nil {
		return err
	}
	p, err := m.Start(Command{Path: "/bin/sleep", Args: []string{"1000"}})
	if err != nil {
		return err
	}
	p.Pause()
	fmt.Println(p.Pid)
	select {}
}

func TestNothingOutlivesAKill(t *testing.T) {
	openLab(t) // or skip
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.Command(program)
	victim.Env = append(os.Environ(), "VM_TEST_LAB="+t.TempDir())
	out, err := victim.StdoutPipe()
	if err == nil {
		err = victim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	loops := attachedLoops(t)
	victim.Process.Kill()
	victim.Wait()
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("the laboratory says %q", line)
	}
	until(t, "the machine's process ends with the laboratory", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
	})
	until(t, "its loop device is free again", func() bool { return loops == 0 || attachedLoops(t) < loops })
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func attachedLoops(t *testing.T) int {
	t.Helper()
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	return len(loops)
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after 10s not yet: %s", what)
		}
	}
}
