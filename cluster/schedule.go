package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/fsm"
)

// BackupSchedule says where the leader keeps backups, how often it makes one, and how many
// stay.
type BackupSchedule struct {
	Dir      string
	Interval time.Duration
	Keep     int
}

const (
	// backupTime sorts by name as by time, and is allowed in file names everywhere.
	backupTime   = "20060102T150405Z"
	backupRetry  = time.Minute // after a failure
	backupSuffix = ".backup"
)

// Backed is how the scheduled backups of this node, while it leads, have gone.
type Backed struct {
	Last  time.Time // the newest that is whole; zero if this node has made none
	Error string    // why the newest attempt failed, empty if it did not
}

// Backed returns that; nil if this node does not lead, or makes no backups.
func (n *Node) Backed() *Backed { return n.backed.Load() }

// Backups runs while this node leads, see OnLeader. When a new leader takes over, it counts
// from the newest backup that it finds in its directory.
func (n *Node) Backups(ctx context.Context, schedule BackupSchedule, log hclog.Logger) {
	wait := time.Duration(0)
	if made, err := schedule.list(n.cfg.Identity.ClusterID()); err == nil && len(made) > 0 {
		wait = min(schedule.Interval, schedule.Interval-time.Since(made[len(made)-1].at)) // the other leader's clock may be ahead
	}
	defer n.backed.Store(nil)
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = schedule.Interval
		path, err := n.backupTo(schedule)
		if err != nil {
			n.backed.Store(&Backed{last, err.Error()})
			wait = min(wait, backupRetry)
			log.Error("the scheduled backup failed", "again-in", wait, "error", err)
			continue
		}
		last = time.Now()
		n.backed.Store(&Backed{Last: last})
		log.Info("made a scheduled backup", "file", path)
		if err := schedule.prune(n.cfg.Identity.ClusterID()); err != nil {
			log.Error("old backups cannot be deleted", "dir", schedule.Dir, "error", err)
		}
	}
}

// backupTo writes one backup and reads it again before it gets its name.
func (n *Node) backupTo(schedule BackupSchedule) (string, error) {
	backup := n.Backup()
	path := filepath.Join(schedule.Dir, schedule.name(backup.Stamp))
	if err := os.MkdirAll(schedule.Dir, 0o700); err != nil {
		return "", err
	}
	temp := filepath.Join(schedule.Dir, ".kontiki-"+n.cfg.Name+".tmp") // one, so that crashes do not pile them up
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	err = backup.Write(file)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		_, err = file.Seek(0, 0)
	}
	if err == nil {
		_, err = ReadBackup(file, func(*fsm.Entry) {})
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = renameDurably(temp, path)
	}
	if err != nil {
		return "", errors.Join(err, removeIfThere(temp))
	}
	return path, nil
}

// name is kontiki-CLUSTER-TIME-INDEX.backup.
func (s BackupSchedule) name(stamp Stamp) string {
	return fmt.Sprintf("kontiki-%s-%s-%d%s", stamp.Cluster, stamp.Time.Format(backupTime), stamp.Index, backupSuffix)
}

// scheduled is a backup that a schedule of this cluster has written.
type scheduled struct {
	path string
	at   time.Time
}

// list returns them, the oldest first. Whatever else is in the directory is not listed: a
// name of another form, and a file that does not begin with the stamp that its name says.
func (s BackupSchedule) list(cluster string) ([]scheduled, error) {
	pattern := regexp.MustCompile("^kontiki-" + regexp.QuoteMeta(cluster) + `-(\d{8}T\d{6}Z)-\d+` + regexp.QuoteMeta(backupSuffix) + "$")
	entries, err := os.ReadDir(s.Dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []scheduled
	for _, entry := range entries {
		match := pattern.FindStringSubmatch(entry.Name())
		if match == nil || !entry.Type().IsRegular() || !s.wrote(entry.Name()) {
			continue
		}
		if at, err := time.Parse(backupTime, match[1]); err == nil {
			found = append(found, scheduled{filepath.Join(s.Dir, entry.Name()), at})
		}
	}
	slices.SortStableFunc(found, func(a, b scheduled) int { return a.at.Compare(b.at) })
	return found, err
}

func (s BackupSchedule) wrote(name string) bool {
	file, err := os.Open(filepath.Join(s.Dir, name))
	if err != nil {
		return false
	}
	defer file.Close()
	stamp, err := readStamp(file)
	return err == nil && s.name(stamp) == name
}

// prune deletes the oldest beyond Keep.
func (s BackupSchedule) prune(cluster string) error {
	made, err := s.list(cluster)
	for len(made) > s.Keep {
		err = errors.Join(err, os.Remove(made[0].path))
		made = made[1:]
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
