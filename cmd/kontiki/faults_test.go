//go:build faults

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestShiftedClock(t *testing.T) {
	before := time.Now()
	for _, offset := range []string{"1h", "-1h", "0s"} {
		if err := shiftClock(offset); err != nil {
			t.Fatal(err)
		}
		want, _ := time.ParseDuration(offset)
		now := time.Now()
		if wall := now.Round(0).Sub(before.Round(0)) - want; wall < -time.Second || wall > 10*time.Second {
			t.Errorf("%s: the wall clock is off by %s", offset, wall+want)
		}
		if unix := time.Duration(now.UnixNano()-before.UnixNano()) - want; unix < -time.Second || unix > 10*time.Second {
			t.Errorf("%s: UnixNano is off by %s", offset, unix+want)
		}
		if elapsed := now.Sub(before); elapsed < 0 || elapsed > 10*time.Second {
			t.Errorf("%s: the monotonic clock went %s", offset, elapsed)
		}
		if since := time.Since(now); since < 0 || since > 10*time.Second {
			t.Errorf("%s: %s since now", offset, since)
		}
	}
}

func TestDiskFaults(t *testing.T) {
	disk := newDiskFaults()
	do := func(line string) {
		t.Helper()
		if answer := command(disk, line); !strings.HasPrefix(answer, "ok") {
			t.Errorf("%s: %s", line, answer)
		}
	}
	do("fail log.store EIO 2")
	for i, want := range []error{syscall.EIO, syscall.EIO, nil} {
		if err := disk.ask("log.store"); !errors.Is(err, want) {
			t.Errorf("ask %d: %v, want %v", i, err, want)
		}
	}
	do("fail log.store ENOSPC")
	for range 3 {
		if err := disk.ask("log.store"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk: %v", err)
		}
	}
	do("delay log.store 20ms")
	began := time.Now()
	if err := disk.ask("log.store"); err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("a slow disk: %v after %s", err, time.Since(began))
	}
	do("hang log.store")
	hangs := make(chan error)
	go func() { hangs <- disk.ask("log.store") }()
	select {
	case <-hangs:
		t.Error("a hung disk answers")
	case <-time.After(20 * time.Millisecond):
	}
	do("clear")
	if err := <-hangs; err != nil {
		t.Error(err)
	}
	do("goroutines")
	for _, wrong := range []string{"", "fail", "fail log.store", "fail log.store EWHAT", "delay log.store", "hang log.store 1 2", "clock", "clock x"} {
		if answer := command(disk, wrong); !strings.HasPrefix(answer, "error") {
			t.Errorf("%q: %s", wrong, answer)
		}
	}
}
