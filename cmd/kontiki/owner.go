package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

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
