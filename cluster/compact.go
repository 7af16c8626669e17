package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"
)

const (
	// compactSuffix names the file that a compaction writes.
	compactSuffix = ".compact"

	// compactStep is how many bytes one transaction of a compaction copies, and compactTell
	// after what time it says how far it is.
	compactStep = 8 << 20
	compactTell = 2 * time.Second
)

// compactLog gives the file system back what the log no longer uses. A bbolt file never
// shrinks: what is deleted from it becomes free pages for later entries, which after a storm
// of large objects may be most of it. So at a start, before anybody uses the file, one that
// is large and more than half free is copied into a new one, which then takes its name.
//
// A crash at any time leaves either file whole under that name. The old file stays locked
// until then, so that no second process gets at either of them (see also openBolt). What
// is not possible is left for another time, because the log is as good as before: only what
// the log itself has wrong is an error.
func compactLog(path string, cfg *Config) (err error) {
	logger := cfg.Logger.Named("compact")
	size, err := mostlyFree(path, cfg)
	if err != nil || size.whole == 0 {
		return err
	}
	defer recoverDamage(path, &err)
	db, err := bbolt.Open(path, 0o600, boltOptions(cfg.StartTimeout))
	if err != nil {
		return explainOpen(path, err)
	}
	defer db.Close()
	if err := rewrite(db, size, cfg, logger); err != nil {
		logger.Warn("the log was not compacted; it works as before", "error", err)
		return errors.Join(ignoreAbsent(os.Remove(path + compactSuffix)))
	}
	return nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// fileSize is how large a log's file is, and how much of that is in use.
type fileSize struct{ whole, used int64 }

// mostlyFree returns the sizes of a log that is worth compacting, else zeros. It counts on
// this goroutine, where a damaged page is an error and not the end of the process.
func mostlyFree(path string, cfg *Config) (size fileSize, err error) {
	if err := ignoreAbsent(os.Remove(path + compactSuffix)); err != nil {
		return size, fmt.Errorf("cannot remove an unfinished compaction: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() <= cfg.CompactBytes {
		return size, ignoreAbsent(err)
	}
	defer recoverDamage(path, &err)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: cfg.StartTimeout})
	if err != nil {
		return size, explainOpen(path, err)
	}
	defer db.Close()
	used := int64(4 * db.Info().PageSize)
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			stats := b.Stats()
			used += int64(stats.BranchAlloc + stats.LeafAlloc)
			return nil
		})
	})
	if err != nil || 2*used > info.Size() {
		return size, err
	}
	return fileSize{whole: info.Size(), used: used}, nil
}

// rewrite copies the log, looks at the copy, and puts it in the old one's place.
func rewrite(db *bbolt.DB, size fileSize, cfg *Config, logger hclog.Logger) error {
	space := cfg.DiskSpace
	if space == nil {
		space = freeSpace
	}
	if free, _, err := space(filepath.Dir(db.Path())); err == nil && free < uint64(size.used)+compactStep {
		return fmt.Errorf("that takes %d MiB, and %d are free", size.used>>20+compactStep>>20, free>>20)
	}
	start, path := time.Now(), db.Path()
	logger.Info("the log is mostly free and is compacted", "path", path, "bytes", size.whole, "used", size.used)
	end := tellProgress(path+compactSuffix, size.used, logger)
	err := copyLog(db, path+compactSuffix, cfg)
	end()
	if err != nil {
		return err
	}
	after, err := os.Stat(path + compactSuffix)
	if err != nil {
		return err
	}
	if cfg.Faults != nil {
		if err := cfg.Faults(OpCompactRename); err != nil {
			return err
		}
	}
	if err := os.Rename(path+compactSuffix, path); err != nil {
		return err
	}
	logger.Info("the log is compacted", "path", path, "bytes", after.Size(), "was", size.whole, "took", time.Since(start).Round(time.Millisecond))
	return syncDir(filepath.Dir(path))
}

// copyLog writes a whole log into a new file, down to the disk.
func copyLog(db *bbolt.DB, to string, cfg *Config) error {
	fresh, err := bbolt.Open(to, 0o600, boltOptions(cfg.StartTimeout))
	if err != nil {
		return err
	}
	fresh.NoSync = true       // once, at the end
	fresh.AllocSize = 1 << 20 // what a file grows by; no more than it needs
	err = bbolt.Compact(fresh, db, compactStep)
	if err == nil {
		err = fresh.Sync()
	}
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	return checkLog(to, cfg.StartTimeout)
}

// tellProgress says how large the file at path has become, until the function it returns is
// called.
func tellProgress(path string, of int64, logger hclog.Logger) (end func()) {
	ticker, done := time.NewTicker(compactTell), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				if info, err := os.Stat(path); err == nil {
					logger.Info("compacting the log", "bytes", info.Size(), "of", of)
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}
