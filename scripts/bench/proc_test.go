package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const behind = " S 1 2 2 0 -1 4194560 100 0 0 0 123 45 6 7 20 0 12 0 300 1000 200"
	for _, name := range []string{"(kontiki)", "(a b)", "(a) R 9 9 9 (x)"} {
		got, err := parseStat("42 " + name + behind)
		if want := 1680 * time.Millisecond; err != nil || got != want {
			t.Errorf("%s: %v, %v, not %v", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "42 (x) S 1 2", "42 (x)" + strings.Replace(behind, "123", "abc", 1)} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tkontiki\nVmPeak:\t 9999999 kB\nVmRSS:\t   20480 kB\nRssAnon:\t    5120 kB\nRssFile:\t 15360 kB\n")
	if want := (memory{20, 5}); err != nil || got != want {
		t.Errorf("%v, %v, not %v", got, err, want)
	}
	for _, bad := range []string{"VmRSS:\t20480 kB\n", "VmRSS:\tx kB\nRssAnon:\t1 kB\n", ""} {
		if got, err := parseStatus(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// TestProcOfThisMachine reads what the kernel really says, of this process.
func TestProcOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc on this system: ", err)
	}
	pids := []int{os.Getpid()}
	if m, err := residentMemory(pids); err != nil || m.Anonymous <= 0 || m.Resident < m.Anonymous {
		t.Errorf("memory %v, %v", m, err)
	}
	begin, err := cpuTime(pids)
	if err != nil {
		t.Fatal(err)
	}
	for now := begin; now == begin; { // ends: this loop uses the CPU
		if now, err = cpuTime(pids); err != nil || now < begin {
			t.Fatal(now, err)
		}
	}
}
