package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// releaseMapped takes the pages of a file that is mapped here out of this process' memory.
// They are the kernel's cache of the file, and stay that for as long as it likes; who reads
// one again finds it there. The caller makes sure that the file stays mapped meanwhile: what
// else came to stand in its place would be lost.
//
// What does not work leaves the pages where they are, which is no error.
func releaseMapped(path string) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	path, inode := inodeOf(path)
	for line := range strings.Lines(string(maps)) {
		if from, to, ok := mappedAt(line, path, inode); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}

// inodeOf returns a file as the kernel names it.
func inodeOf(path string) (resolved, inode string) {
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return "", ""
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(resolved, &stat); err != nil {
		return "", ""
	}
	return resolved, strconv.FormatUint(stat.Ino, 10)
}

// mappedAt reads a line of /proc/PID/maps: where this file is mapped, shared and to be read
// only as bbolt does it.
func mappedAt(line, path, inode string) (from, to uintptr, ok bool) {
	const start, perms, ino, fields = 0, 1, 4, 6
	f := strings.Fields(line)
	name := strings.IndexByte(line, '/')
	if len(f) < fields || name < 0 || f[perms] != "r--s" || f[ino] != inode || strings.TrimSuffix(line[name:], "\n") != path {
		return 0, 0, false
	}
	low, high, _ := strings.Cut(f[start], "-")
	a, err1 := strconv.ParseUint(low, 16, strconv.IntSize)
	b, err2 := strconv.ParseUint(high, 16, strconv.IntSize)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && a < b
}
