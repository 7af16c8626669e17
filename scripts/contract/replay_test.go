package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// workersOfTest are many: most sequences wait, for a stream to be quiet or for a controller.
const workersOfTest = 24

func theRecord(t *testing.T) *record {
	t.Helper()
	past, err := loadRecord(filepath.Join(root, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	return past
}

const root = "../.." // the checkout, from here

// TestRecordIsOfTheCorpus fails when a row was added or changed and not recorded.
func TestRecordIsOfTheCorpus(t *testing.T) {
	past, all := theRecord(t), corpus()
	if !strings.HasPrefix(past.Peer, "v1.") || len(past.Sequences) != len(all) {
		t.Errorf("recorded of %q: %d sequences, want %d", past.Peer, len(past.Sequences), len(all))
	}
	for _, q := range all {
		if answers, err := past.of(q); err != nil {
			t.Errorf("%q: %v", q.name, err)
		} else if len(answers) < len(q.steps) {
			t.Errorf("%q: %d answers to %d steps", q.name, len(answers), len(q.steps))
		}
	}
}

// TestContract sends the contract's rows over HTTP to a cluster of three processes,
// through its leader and a follower, and holds the answers against those that
// kube-apiserver gave when it was recorded.
func TestContract(t *testing.T) {
	binary := os.Getenv("KONTIKI_BIN")
	if binary == "" {
		t.Skip("KONTIKI_BIN is not set: make test builds the program and sets it")
	}
	if _, err := os.Stat(binary); err != nil { // and go test runs anew when it was built anew
		t.Fatal(err)
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	k, err := startKontiki(t.Context(), checkout, t.TempDir())
	if k != nil {
		t.Cleanup(k.stop)
	}
	if err != nil {
		t.Fatal(err)
	}
	past := theRecord(t)
	servers := []*server{{name: "record", record: past}, k.leader, k.follower}
	r := compareAll(t.Context(), servers, corpus(), workersOfTest)
	if r.failure != nil {
		t.Error(r.failure)
	}
	if want := 2 * past.answers(); r.compared != want || want < 30000 {
		t.Errorf("compared %d answers of the leader and the follower, want %d, and at least 30000", r.compared, want)
	}
	var report strings.Builder
	r.write(&report)
	if r.unmeant() > 0 {
		t.Error(report.String())
	} else {
		t.Log(report.String()[strings.LastIndex(report.String(), fmt.Sprint(r.sequences, " sequences")):])
	}
}
