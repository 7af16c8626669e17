package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func example() *record {
	return &record{Commit: "abc", Machine: "2 cores", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Results: []result{
		{Phase: "create", Server: "kontiki", Round: 1, Operations: 10, PerSecond: 1000, P50: 1, P99: 9, CPU: 0.4},
		{Phase: "create", Server: "kontiki", Round: 2, Operations: 10, PerSecond: 3000, P50: 3, P99: 11, CPU: 0.6},
		{Phase: "create", Server: "kube-apiserver", Round: 1, Operations: 10, PerSecond: 400, P50: 60, P99: 99, CPU: 2.5},
		{Phase: "get", Server: "kontiki", Round: 1, Operations: 10, PerSecond: 9000, P50: 1, P99: 2, CPU: 0.1},
		{Phase: "get", Server: "floor", Round: 1, Operations: 10, PerSecond: 20000, P50: 1, P99: 2, CPU: 0.05},
		{Phase: "kill", Server: "kontiki", Round: 1, Operations: 5, Seconds: 0.5, Most: 3},
		{Phase: "idle", Server: "kontiki", Round: 1, Operations: 3, Resident: 100, Anonymous: 60, Core: 0.8},
		{Phase: "idle", Server: "kube-apiserver", Round: 1, Operations: 4, Resident: 400, Anonymous: 200, Core: 2},
	}}
}

func TestTables(t *testing.T) {
	var out bytes.Buffer
	if err := example().print(&out, "markdown"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| create pod | 2000/s | 2.0 | 10.0 | 0.500 | 400/s | 60.0 | 99.0 | 2.50 | 5.0× | ≤ 0.45 missed |  |",
		"| get pod | 9000/s | 1.0 | 2.0 | 0.100 |  |  |  |  |  | ≤ 0.08 missed | 0.050 |",
		"| next write after kill -9 of the leader | 0.50 s (most of 5: 3.00) |  |  | ≤ 2 met |",
		"| resident idle | 100 MiB (anonymous 60) in 3, 0.8 % of a core each | 400 MiB (anonymous 200) in 4, 2.0 % of a core each | 4.0× | ≤ 150 met |",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("want %s\nin\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "delete") {
		t.Error("there is a row for what was not measured")
	}
	if err := example().print(io.Discard, "yaml"); err == nil {
		t.Error("no error for an unknown format")
	}
}

func TestRecordSurvivesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "record.json")
	if err := example().write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(example())
	if again, _ := json.Marshal(got); !bytes.Equal(again, want) {
		t.Errorf("%s is not\n%s", again, want)
	}
	if err := os.WriteFile(path, []byte("| a table |"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(path); err == nil {
		t.Error("no error for what is no record")
	}
}

// TestPlot: the drawing is well-formed, its axes begin at zero, and no dot stands for what did not happen.
func TestPlot(t *testing.T) {
	drawn := plot(panels([]point{
		{Objects: 1000, Create: 1, Patch: 2, Get: 0.1, Snapshots: 0},
		{Objects: 150000, Create: 1.5, Patch: 3.9, Get: 0.1, Snapshots: 2, Snapshot: 0.4},
	}))
	decoder, dots := xml.NewDecoder(strings.NewReader(drawn)), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "circle" {
			dots++
		}
	}
	if want := 9*2 - 2; dots != want { // nine lines, of which two begin at the second point
		t.Errorf("%d dots, not %d", dots, want)
	}
	for _, want := range []string{">create, patch: CPU ms<", ">5<", ">0<", ">1k<", ">150k<"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in %s", want, drawn)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.03: 0.05, 0.1: 0.1, 1.5: 2, 2: 2, 2.1: 5, 7: 10, 130: 200} {
		if got := roundUp(v); got != want {
			t.Errorf("%g goes up to %g, not %g", v, got, want)
		}
	}
}
