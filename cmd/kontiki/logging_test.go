package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/go-hclog"
)

// TestSink: what Kubernetes' libraries log, and at which of our levels it is shown.
func TestSink(t *testing.T) {
	var out bytes.Buffer
	base := hclog.New(&hclog.LoggerOptions{Name: "kontiki", Level: hclog.Trace, Output: &out, DisableTime: true})
	now := time.Unix(0, 0)
	s := newSink(base)
	s.errors.now = func() time.Time { return now }
	log := logr.New(s).WithName("kubernetes").WithValues("kind", "Pod")
	log.Info("synced", "count", 3)
	log.V(4).Info("detail")
	log.Error(errors.New("boom"), "cannot list")
	log.Error(errors.New("boom"), "cannot list")
	now = now.Add(errorPause)
	log.Error(nil, "cannot watch")
	want := `[DEBUG] kontiki.kubernetes: synced: kind=Pod count=3
[TRACE] kontiki.kubernetes: detail: kind=Pod
[WARN]  kontiki.kubernetes: cannot list: kind=Pod error=boom
[DEBUG] kontiki.kubernetes: cannot list: kind=Pod error=boom
[WARN]  kontiki.kubernetes: cannot watch: kind=Pod
`
	if got := out.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	base.SetLevel(hclog.Info)
	if log.Enabled() || log.V(2).Enabled() {
		t.Error("at level info the libraries think that somebody listens")
	}
}

// TestLogJSON: with --log-format json every line of a server is an object, and requests,
// also those that are refused, make no line at level info, but for a warning now and then.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freeAddress(t)
	p := launch(t, dir, addr, nil, "server", "--name=n0", "--data-dir="+dir, "--api-addr="+addr, "--log-format=json")
	c := &testCluster{t: t, nodes: []*testNode{{Server: &Server{URL: p.url}}}}
	before := strings.Count(p.stderr.String(), "\n")
	for range 20 {
		c.stranger(0, "").get("/healthz")
		c.stranger(0, "wrong").get("/api/v1/namespaces")
	}
	if after := strings.Count(p.stderr.String(), "\n"); after > before+2 {
		t.Errorf("40 requests make %d lines: %s", after-before, p.stderr.String())
	}
	p.end(syscall.SIGTERM)
	for line := range strings.Lines(p.stderr.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["@level"] == nil || entry["@message"] == nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	if !strings.Contains(p.stderr.String(), `"@module":"kontiki.raft"`) {
		t.Errorf("raft's lines are missing: %s", p.stderr.String())
	}
	out, err := kontiki(t, nil, "server", "--data-dir", dir, "--log-format=xml").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "want text or json") {
		t.Errorf("--log-format=xml: %v: %s", err, out)
	}
}
