//go:build faults

package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// diskFaults is what is wrong with the disk, one fault an operation (cluster.Op...).
type diskFaults struct {
	mu     sync.Mutex
	faults map[string]*diskFault
	healed chan struct{} // closed by clear, for what hangs
}

type diskFault struct {
	kind  string // delay, hang, fail or kill
	delay time.Duration
	err   error
	count int // fail: how often, kill: at which; 0 is always and the first
}

func newDiskFaults() *diskFaults {
	return &diskFaults{faults: make(map[string]*diskFault), healed: make(chan struct{})}
}

func (d *diskFaults) set(kind, op string, args []string) (err error) {
	fault := diskFault{kind: kind}
	arg := ""
	if len(args) > 0 && (kind == "fail" || kind == "delay") {
		arg, args = args[0], args[1:]
	}
	if len(args) > 0 && (kind == "fail" || kind == "kill") {
		if fault.count, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return fmt.Errorf("%s %s: too many words", kind, op)
	}
	switch kind {
	case "hang", "kill":
	case "delay":
		if fault.delay, err = time.ParseDuration(arg); err != nil {
			return err
		}
	case "fail":
		if fault.err = map[string]error{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC}[arg]; fault.err == nil {
			return fmt.Errorf("fail %s: %q is neither EIO nor ENOSPC", op, arg)
		}
	default:
		return fmt.Errorf("what is %q?", kind)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[op] = &fault
	return nil
}

func (d *diskFaults) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.faults)
	close(d.healed)
	d.healed = make(chan struct{})
}

// ask is cluster.Faults.
func (d *diskFaults) ask(op string) error {
	d.mu.Lock()
	fault, healed := d.faults[op], d.healed
	if fault == nil {
		d.mu.Unlock()
		return nil
	}
	now := *fault
	if fault.count--; now.kind == "fail" && fault.count == 0 {
		delete(d.faults, op)
	}
	d.mu.Unlock()
	switch now.kind {
	case "delay":
		select {
		case <-time.After(now.delay):
		case <-healed:
		}
	case "hang":
		<-healed
	case "fail":
		return now.err
	case "kill":
		if now.count <= 1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing happens after it, not even until the signal arrives
		}
	}
	return nil
}
