package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A result is one phase on one server. What a phase doesn't measure is zero.
type result struct {
	Phase      string  `json:"phase"`
	Server     string  `json:"server"`
	Round      int     `json:"round"`
	Operations int     `json:"operations"`
	PerSecond  float64 `json:"perSecond,omitempty"`
	P50        float64 `json:"p50ms,omitempty"`
	P99        float64 `json:"p99ms,omitempty"`
	CPU        float64 `json:"cpuMsPerOperation,omitempty"`
	Bytes      float64 `json:"bytesPerOperation,omitempty"` // that the client got
	Resumed    int     `json:"watchesResumed,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"` // the median, if there are several
	Most       float64 `json:"mostSeconds,omitempty"`
	Resident   float64 `json:"residentMiB,omitempty"`
	Anonymous  float64 `json:"anonymousMiB,omitempty"`
	Core       float64 `json:"percentOfACoreEach,omitempty"`
}

// brief is the result on a line.
func (r result) brief() string {
	switch {
	case r.Seconds > 0:
		return fmt.Sprintf("%.2f s, at most %.2f s", r.Seconds, r.Most)
	case r.Resident > 0:
		return fmt.Sprintf("%.0f MiB, %.0f MiB anonymous, %.1f %% of a core each", r.Resident, r.Anonymous, r.Core)
	}
	if r.Resumed > 0 {
		return fmt.Sprintf("%.0f/s, p50 %.1f ms, p99 %.1f ms, CPU %.3f ms/op; %d watches ended and were resumed", r.PerSecond, r.P50, r.P99, r.CPU, r.Resumed)
	}
	return fmt.Sprintf("%.0f/s, p50 %.1f ms, p99 %.1f ms, CPU %.3f ms/op", r.PerSecond, r.P50, r.P99, r.CPU)
}

// A record is what was measured, and with what.
type record struct {
	Command string    `json:"command"`
	Commit  string    `json:"commit"` // of Kontiki
	Time    time.Time `json:"time"`
	Machine string    `json:"machine"`
	Options options   `json:"options"`
	Results []result  `json:"results,omitempty"`
	Points  []point   `json:"points,omitempty"` // with --scale
	Crowd   *crowded  `json:"crowd,omitempty"`
}

func newRecord(o options) *record {
	return &record{
		Command: "go run ./scripts/bench " + strings.Join(os.Args[1:], " "),
		Commit:  commit(o.binary), Time: time.Now().UTC().Truncate(time.Second), Machine: machine(), Options: o,
	}
}

// commit is what the measured program was built from, with a + if files differed from it. If it was built
// without a stamp, it is what is checked out.
func commit(binary string) string {
	settings := map[string]string{}
	if info, err := buildinfo.ReadFile(binary); err == nil {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	if revision := settings["vcs.revision"]; revision != "" {
		return revision[:min(len(revision), 7)] + map[string]string{"true": "+"}[settings["vcs.modified"]]
	}
	out, err := exec.Command("git", "describe", "--always", "--dirty=+", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// machine says in a line what the numbers are from.
func machine() string {
	model, memory := "unknown CPU", "?"
	for line := range strings.Lines(file("/proc/cpuinfo")) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
		}
	}
	var kib float64
	if _, err := fmt.Sscanf(file("/proc/meminfo"), "MemTotal: %f kB", &kib); err == nil {
		memory = fmt.Sprintf("%.0f GiB", kib/1024/1024)
	}
	kernel := strings.TrimSpace(file("/proc/sys/kernel/osrelease"))
	return fmt.Sprintf("%d cores of %s, %s, Linux %s, %s", runtime.NumCPU(), model, memory, kernel, runtime.Version())
}

// file is a file's text; without it the machine is described with less.
func file(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
