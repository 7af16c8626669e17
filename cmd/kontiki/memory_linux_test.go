package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestStartLeavesMemory: the pages of the program that only its start needs do not stay in its
// memory, and it serves on.
func TestStartLeavesMemory(t *testing.T) {
	t.Parallel()
	file, err := os.Stat(program(t, "KONTIKI_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	p := launchSingle(t, filepath.Join(t.TempDir(), "data")) // two thirds of it and more are in memory then
	until(t, func() error {
		if now, whole := p.residentFiles(), file.Size()>>10; now > whole/2 {
			return fmt.Errorf("%d KiB of files are in memory, the program has %d", now, whole)
		}
		return nil
	})
	p.waitAnswer("/readyz")
}

// residentFiles is how many KiB of mapped files, the program's above all, are in the process' memory.
func (p *process) residentFiles() (kib int64) {
	p.t.Helper()
	pages, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	var size, resident, shared int64 // pages; files are what is shared
	if _, err := fmt.Sscan(string(pages), &size, &resident, &shared); err != nil {
		p.t.Fatalf("%v in %s", err, pages)
	}
	return shared * int64(os.Getpagesize()) >> 10
}
