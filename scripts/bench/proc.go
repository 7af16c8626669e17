package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: Linux shows all programs hundredths of a second.
const tick = 10 * time.Millisecond

// cpuTime is what all of these processes have used until now, in user mode and in the kernel.
func cpuTime(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		used, err := parseStat(string(text))
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		total += used
	}
	return total, nil
}

// parseStat adds utime and stime. The second field is the program's name in parentheses, which may have
// blanks and parentheses in it.
func parseStat(text string) (time.Duration, error) {
	const utime, stime = 11, 12 // behind the name
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) <= stime {
		return 0, fmt.Errorf("%d fields behind the name", len(fields))
	}
	var ticks int64
	for _, field := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// A memory is what processes have in RAM, in MiB.
type memory struct {
	Resident  float64 `json:"residentMiB"`
	Anonymous float64 `json:"anonymousMiB"` // their own, without pages of files such as the program's
}

func residentMemory(pids []int) (total memory, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return total, err
		}
		one, err := parseStatus(string(text))
		if err != nil {
			return total, fmt.Errorf("/proc/%d/status: %w", pid, err)
		}
		total.Resident += one.Resident
		total.Anonymous += one.Anonymous
	}
	return total, nil
}

func parseStatus(text string) (m memory, err error) {
	found := 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		into := map[string]*float64{"VmRSS": &m.Resident, "RssAnon": &m.Anonymous}[key]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return m, err
		}
		*into = kib / 1024
		found++
	}
	if found != 2 {
		return m, fmt.Errorf("it has %d of VmRSS and RssAnon", found)
	}
	return m, nil
}
