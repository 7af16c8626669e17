package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/cluster"
	"kontiki/cluster/clustertest"
	"kontiki/fsm"
)

// TestScheduledBackups lets a schedule run among files that are none of its business, with a
// directory that fails for a while.
func TestScheduledBackups(t *testing.T) {
	c := clustertest.New(t, 1)
	put(t, c, 0, "old", 3, 10)
	dir := filepath.Join(t.TempDir(), "backups")
	foreign := []string{"notes.txt", "kontiki-other-20200101T000000Z-1.backup", "sub",
		fmt.Sprintf("kontiki-%s-20200101T000000Z-1.backup", c.Root().ID())} // of our form, not of our making
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range foreign {
		if name != "sub" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	schedule := cluster.BackupSchedule{Dir: dir, Interval: 300 * time.Millisecond, Keep: 2}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Node(0).Backups(ctx, schedule, c.Logger("backup"))
	}()
	seen := make(map[string]bool)
	clustertest.Until(t, func() error {
		for _, name := range backupsIn(t, dir, foreign) {
			if !seen[name] {
				seen[name] = true
				put(t, c, 0, fmt.Sprintf("new%d", len(seen)), 1, 10)
			}
		}
		if len(seen) < 4 {
			return fmt.Errorf("%d backups so far", len(seen))
		}
		return nil
	})
	cancel()
	<-done
	left := backupsIn(t, dir, foreign)
	if len(left) == 0 || len(left) > schedule.Keep {
		t.Errorf("%v are left, want at most %d", left, schedule.Keep)
	}
	for _, name := range left {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.ReadBackup(file, func(*fsm.Entry) {}); err != nil {
			t.Error(err)
		}
		file.Close()
	}
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a file of somebody else: %v", err)
		}
	}
}

func backupsIn(t *testing.T, dir string, foreign []string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(foreign, entry.Name()) && !strings.HasSuffix(entry.Name(), ".tmp") {
			names = append(names, entry.Name())
		}
	}
	return names
}

// TestScheduledBackupFails: what stands in the way is logged, and leaves no half backup.
func TestScheduledBackupFails(t *testing.T) {
	c := clustertest.New(t, 1)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &failureLog{Logger: c.Logger("backup"), failed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Node(0).Backups(ctx, cluster.BackupSchedule{Dir: filepath.Join(blocked, "dir"), Interval: time.Hour, Keep: 1}, log)
	select {
	case <-log.failed:
	case <-time.After(clustertest.Patience):
		t.Error("no failure was logged")
	}
}

// failureLog tells of the first error that is logged.
type failureLog struct {
	hclog.Logger
	failed chan struct{}
}

func (l *failureLog) Error(msg string, args ...any) {
	l.Logger.Error(msg, args...)
	select {
	case l.failed <- struct{}{}:
	default:
	}
}
