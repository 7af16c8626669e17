package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontiki/api"
	"kontiki/api/metrics"
	"kontiki/cluster"
)

// statusOf reads the status that node i answers with.
func (c *testCluster) statusOf(i int) (status api.Status, err error) {
	a := c.http(i).get(api.StatusPath)
	if a.code != 200 {
		return status, fmt.Errorf("answer %d: %s", a.code, a.body)
	}
	return status, fromJSON(a.body, &status)
}

// TestStatus: any node tells how all are; one that is down is shown as such, and without a
// majority there is no leader, and still an answer, in bounded time.
func TestStatus(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i := range 3 {
		status, err := c.statusOf(i)
		if err != nil {
			t.Fatal(err)
		}
		if status.Leader != c.nodes[c.leader()].cfg.Name || len(status.Members) != 3 || len(status.Objects) == 0 {
			t.Errorf("node %d: %+v", i, status)
		}
		for _, m := range status.Members {
			if m.Report == nil || m.Report.Disk.Total == 0 || len(m.Report.Certificates) != 3 || m.Report.LogBytes == 0 || m.Report.AppliedIndex == 0 {
				t.Errorf("node %d of %s: %+v, %+v", i, m.Name, m, m.Report)
			}
		}
	}
	down := c.followers()
	stays := c.leader()
	for n, i := range down {
		c.crash(i)
		until(t, func() error {
			start := time.Now()
			status, err := c.statusOf(stays)
			if took := time.Since(start); took > slow(3*time.Second) {
				t.Errorf("it took %s", took)
			}
			if err != nil {
				return err
			}
			missing := 0
			for _, m := range status.Members {
				if m.Error != "" && m.Report == nil {
					missing++
				}
			}
			if missing != n+1 || len(status.Warnings) < n+2 || (status.Leader == "") != (n == 1) {
				return fmt.Errorf("%d are missing, leader %q, %q", missing, status.Leader, status.Warnings)
			}
			return nil
		})
	}
}

// TestStatusCommand: the real command, its screen, its JSON and its exit code.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	env := []string{"KUBECONFIG=" + c.nodes[0].Kubeconfig}
	out, err := kontiki(t, env, "status").CombinedOutput()
	for _, want := range []string{"Leader n0, as n0 sees it", "MEMBER", "n0      leader", "namespaces", "No warnings"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("no %q in %v:\n%s", want, err, out)
		}
	}
	var status api.Status
	out, err = kontiki(t, env, "status", "-o", "json").Output()
	if err != nil || fromJSON(out, &status) != nil || status.Leader != "n0" {
		t.Errorf("-o json: %v: %s", err, out)
	}
	if out, err := kontiki(t, env, "status", "-o", "xml").CombinedOutput(); err == nil || !strings.Contains(string(out), "want json") {
		t.Errorf("-o xml: %v: %s", err, out)
	}
	c.crash(0)
	if out, err := kontiki(t, env, "status").CombinedOutput(); err == nil {
		t.Errorf("with the node down: %s", out)
	}
}

// TestStatusExit: without a leader there is a screen, and an error for scripts.
func TestStatusExit(t *testing.T) {
	var screen bytes.Buffer
	s := statusCommand{get: func(context.Context) (api.Status, error) {
		return api.Status{Name: "n1", Warnings: []string{"there is no leader"}}, nil
	}}
	if err := s.once(t.Context(), &screen); !errors.Is(err, errNoLeader) || !strings.Contains(screen.String(), "Leader NONE") {
		t.Errorf("%v\n%s", err, screen.String())
	}
}

// TestStatusScreen is the whole screen, with a member that does not answer.
func TestStatusScreen(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.Local)
	var screen bytes.Buffer
	err := printStatus(&screen, api.Status{
		Name: "n1", Leader: "n1", Time: now,
		Members: []api.MemberStatus{
			{Name: "n1", Role: cluster.RoleVoter, Leader: true, Version: "v1", Lag: 3, Report: &metrics.Report{
				AppliedIndex: 1234, LogBytes: 16 << 20, MemoryBytes: 50 << 20, Watchers: 7,
				Disk: metrics.Disk{Free: 5 << 30, Total: 20 << 30}, Rates: metrics.Rates{Reads: 1.25, Writes: 20},
				Started: now.Add(-time.Hour), Certificates: []metrics.Certificate{{Name: "ca", NotAfter: now.AddDate(10, 0, 0)}, {Name: "node", NotAfter: now.Add(49 * time.Hour)}},
			}},
			{Name: "n2", Role: cluster.RoleVoter, Version: "v1", Error: "no answer"},
		},
		Objects:  []metrics.Objects{{Group: "coordination.k8s.io", Resource: "leases", Count: 12, Bytes: 2048}},
		Warnings: []string{"n2: no answer"},
	})
	want := `Leader n1, as n1 sees it at 2026-05-06 07:08:09

MEMBER  ROLE    APPLIED      LAG  READS/S  WRITES/S  ERRORS/S  WATCHES  DISK FREE      LOG     MEMORY  CERTIFICATES  UP   VERSION
n1      leader  1234         3    1.2      20.0      0.0       7        5.0 GiB (25%)  16 MiB  50 MiB  2d1h          60m  v1
n2      voter   (no answer)                                                                                               v1

RESOURCE                    OBJECTS  SIZE
leases.coordination.k8s.io  12       2.0 KiB

Warnings
  n2: no answer
`
	if err != nil || screen.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, screen.String(), want)
	}
}

// TestScreen: on a terminal pictures take each other's place and fit; elsewhere they follow.
func TestScreen(t *testing.T) {
	picture := func(w io.Writer) error {
		_, err := io.WriteString(w, "first line\nsecönd line\nthird\nfourth\n")
		return err
	}
	var out bytes.Buffer
	s := &screen{w: &out, size: func() (int, int, bool) { return 6, 4, true }}
	if err := errors.Join(s.show(picture), s.show(picture)); err != nil {
		t.Fatal(err)
	}
	once := "\x1b[Hfirst \x1b[K\r\nsecönd\x1b[K\r\nthird\x1b[K\r\n\x1b[J"
	if got := out.String(); got != "\x1b[2J"+once+once {
		t.Errorf("%q", got)
	}
	out.Reset()
	if err := newScreen(&out).show(picture); err != nil || out.String() != "first line\nsecönd line\nthird\nfourth\n" {
		t.Errorf("without a terminal: %v, %q", err, out.String())
	}
}

// TestStatusWatch: it goes on over a node that cannot be asked, and ends without an error.
func TestStatusWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	s := statusCommand{interval: statusInterval, get: func(context.Context) (api.Status, error) {
		switch asked++; asked {
		case 1:
			return api.Status{Name: "n1", Leader: "n1"}, nil
		case 2:
			return api.Status{}, errors.New("connection refused")
		case 3:
			return api.Status{Name: "n1", Leader: "n2"}, nil
		}
		cancel()
		return api.Status{}, ctx.Err()
	}}
	var out bytes.Buffer
	if err := s.follow(ctx, newScreen(&out)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Leader n1", "cannot ask: connection refused", "Leader n2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestStatusOfBackups: a scheduled backup that fails is seen where operators look, until one
// succeeds.
func TestStatusOfBackups(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "backups")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 1, func(_ int, cfg *Config) {
		cfg.Backups.Dir, cfg.Backups.Interval = blocked, time.Second
	})
	seen := func(failed string, warnings int) {
		t.Helper()
		until(t, func() error {
			status, err := c.statusOf(0)
			if err != nil {
				return err
			}
			if got := strings.Count(strings.Join(status.Warnings, "\n"), "the scheduled backup failed: "); got != warnings {
				return fmt.Errorf("warnings %q, want %d of a backup", status.Warnings, warnings)
			}
			scrape := string(c.http(0).get("/metrics").body)
			if !strings.Contains(scrape, "\nkontiki_backup_failed "+failed+"\n") || strings.Contains(scrape, "\nkontiki_backup_last_success") != (failed == "0") {
				return fmt.Errorf("the metrics do not say that %s backups failed", failed)
			}
			return nil
		})
	}
	seen("1", 1)
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	seen("0", 0)
}
