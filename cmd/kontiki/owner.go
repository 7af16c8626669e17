package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kontiki/cluster"
)

// ownership is of a data directory, while a server runs on it.
type ownership struct{ dir *os.File }

// own locks a data directory, before a second server writes certificates over those of the
// one that runs; one that is just ending is waited for. The lock goes with the process. Of a
// directory that cannot be made or opened others complain.
func own(ctx context.Context, dataDir string) (*ownership, error) {
	dir, err := openDir(dataDir)
	if err != nil {
		return &ownership{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.DefaultConfig().StartTimeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, lockPause, true, func(context.Context) (bool, error) {
		return !errors.Is(syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK), nil
	})
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("%w: %s is locked: stop the other kontiki, or use another --data-dir", cluster.ErrInUse, dataDir)
	}
	return &ownership{dir}, nil
}

func openDir(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return os.Open(path)
}

const lockPause = 20 * time.Millisecond

func (o *ownership) release() error {
	if o == nil || o.dir == nil {
		return nil
	}
	return o.dir.Close()
}

// checkOwner refuses to write to the data of a server that runs as another user: it could
// not read that, and would not start again.
func checkOwner(dataDir string) error {
	info, err := os.Stat(filepath.Join(dataDir, "node.json"))
	if err != nil {
		return nil // who reads it says what is wrong
	}
	return ownedBy(info, dataDir, os.Geteuid())
}

func ownedBy(info fs.FileInfo, dataDir string, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == uid {
		return nil
	}
	owner := strconv.Itoa(int(stat.Uid))
	if found, err := user.LookupId(owner); err == nil {
		owner = found.Username
	}
	return fmt.Errorf("the data in %s belongs to user %s, whose server could not read what another user writes: run this as that one, say with sudo -u %s", dataDir, owner, owner)
}
