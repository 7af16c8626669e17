package pages

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maps  = "/proc/self/maps"  // what is mapped
	smaps = "/proc/self/smaps" // and how much of that is in memory, which takes longer
)

// ReleaseFile releases the pages of a file that is mapped shared and to be read only, as bbolt does it.
// The caller makes sure that the file stays mapped meanwhile: what else came to stand in its place
// would be lost.
func ReleaseFile(path string) {
	path, inode := inodeOf(path)
	release(maps, func(m mapping) bool {
		return m.perms == "r--s" && m.path == path && m.inode == inode
	})
}

// ReleaseProgram releases the pages of the program itself. A part that is not as it is in the file, as
// after a relocation or with a debugger's breakpoint, stays: released, it would be as in the file.
// A breakpoint that is set at this very moment may be lost.
func ReleaseProgram() {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	release(smaps, func(m mapping) bool {
		return (m.perms == "r-xp" || m.perms == "r--p") && m.path == path && m.unwritten()
	})
}

// release releases what is chosen of a list in /proc.
func release(list string, choose func(mapping) bool) {
	text, err := os.ReadFile(list)
	if err != nil {
		return
	}
	for _, m := range mappings(string(text)) {
		if choose(m) {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
		}
	}
}

// mapping is where a part of a file is mapped.
type mapping struct {
	from, to           uintptr
	perms, inode, path string
	none               int // of the lines of smaps in ownPages that say 0
}

// ownPages are the lines of smaps that count pages which are not as they are in the file.
var ownPages = []string{"Anonymous:", "Swap:"}

// unwritten says that there are none, if it was read from smaps.
func (m mapping) unwritten() bool { return m.none == len(ownPages) }

// mappings reads /proc/PID/maps, or smaps, where lines with more follow each of maps.
func mappings(text string) (found []mapping) {
	for line := range strings.Lines(text) {
		if m, ok := parseMapping(line); ok {
			found = append(found, m)
		} else if f := strings.Fields(line); len(found) > 0 && len(f) > 1 && slices.Contains(ownPages, f[0]) && f[1] == "0" {
			found[len(found)-1].none++
		}
	}
	return found
}

// parseMapping reads a line of /proc/PID/maps; one without a file has no path.
func parseMapping(line string) (m mapping, ok bool) {
	const addresses, perms, inode, least = 0, 1, 4, 5
	f := strings.Fields(line)
	if len(f) < least {
		return m, false
	}
	low, high, _ := strings.Cut(f[addresses], "-")
	from, err1 := strconv.ParseUint(low, 16, strconv.IntSize)
	to, err2 := strconv.ParseUint(high, 16, strconv.IntSize)
	if err1 != nil || err2 != nil || from >= to {
		return m, false
	}
	m = mapping{from: uintptr(from), to: uintptr(to), perms: f[perms], inode: f[inode]}
	if name := strings.IndexByte(line, '/'); name >= 0 {
		m.path = strings.TrimSuffix(line[name:], "\n")
	}
	return m, true
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
