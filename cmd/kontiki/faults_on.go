//go:build faults

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster"
)

// What a build with -tags faults reads from its environment, beside the flags.
const (
	faultsSocket = "KONTIKI_FAULTS"        // unix socket that takes commands, see command
	faultsFirst  = "KONTIKI_FAULTS_FIRST"  // commands before the start, with semicolons between them
	faultsTuning = "KONTIKI_FAULTS_TUNING" // THRESHOLD,INTERVAL,TRAILING of raft's snapshots: 64,20ms,16
)

// acceptFaults lets whoever started this process break its disk and its clock. Production
// builds have an empty twin of it.
func acceptFaults(cfg *Config, log hclog.Logger) error {
	if err := tune(&cfg.Tuning, os.Getenv(faultsTuning)); err != nil {
		return err
	}
	if err := shiftClock("0s"); err != nil { // here, before other goroutines ask for the time
		log.Warn("the clock cannot be shifted", "error", err)
	}
	disk := newDiskFaults()
	cfg.Faults = disk.ask
	for first := range strings.SplitSeq(os.Getenv(faultsFirst), ";") {
		if first == "" {
			continue
		}
		if answer := command(disk, first); !strings.HasPrefix(answer, "ok") {
			return fmt.Errorf("%s: %s: %s", faultsFirst, first, answer)
		}
	}
	path := os.Getenv(faultsSocket)
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("%s: %w", faultsSocket, err)
	}
	log.Warn("this build takes faults; it is for tests only", "socket", path)
	go serveFaults(listener, disk)
	return nil
}

func tune(tuning *cluster.Tuning, text string) (err error) {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return fmt.Errorf("%s is %q, want THRESHOLD,INTERVAL,TRAILING", faultsTuning, text)
	}
	if tuning.SnapshotThreshold, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return err
	}
	if tuning.SnapshotInterval, err = time.ParseDuration(parts[1]); err != nil {
		return err
	}
	tuning.TrailingLogs, err = strconv.ParseUint(parts[2], 10, 64)
	return err
}

// serveFaults answers one line with one line, until the process ends.
func serveFaults(listener net.Listener, disk *diskFaults) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				if _, err := fmt.Fprintln(conn, command(disk, lines.Text())); err != nil {
					return
				}
			}
		}()
	}
}

// command runs one line and returns the answer, which begins with ok if it worked:
//
//	clear                          no more faults of the disk; what hangs goes on
//	clock OFFSET                   the wall clock is that far off from now on: 1h, -1h, 0s
//	goroutines                     how many there are
//	stacks                         write them to the standard error, for whoever wonders why so many
//	delay OP DURATION              each such operation takes that much longer
//	hang OP                        each waits until clear
//	fail OP ERROR [TIMES]          it fails: EIO, ENOSPC
//	kill OP [NTH]                  SIGKILL to this process at the first, or NTH, from now on
func command(disk *diskFaults, line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return "error: no command"
	}
	var err error
	switch name, args := words[0], words[1:]; {
	case name == "clear" && len(args) == 0:
		disk.clear()
	case name == "clock" && len(args) == 1:
		err = shiftClock(args[0])
	case name == "goroutines" && len(args) == 0:
		return fmt.Sprint("ok ", runtime.NumGoroutine())
	case name == "stacks" && len(args) == 0:
		err = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	case len(args) > 0:
		err = disk.set(name, args[0], args[1:])
	default:
		err = fmt.Errorf("what is %q?", line)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return "ok"
}
