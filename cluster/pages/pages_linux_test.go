package pages

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleaseProgram: the program's pages leave its memory, and it goes on.
func TestReleaseProgram(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	release(smaps, func(m mapping) bool { // nothing: all its pages are read instead
		if m.path == exe && strings.HasPrefix(m.perms, "r-") {
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_POPULATE_READ); errno != 0 {
				t.Skipf("this kernel does not read ahead (%v), so what is in memory is not known", errno)
			}
			whole += int(m.to - m.from)
		}
		return false
	})
	before := residentFiles(t)
	if whole == 0 || before < whole {
		t.Fatalf("%d bytes of files are in memory and the program has %d: nothing is tried here", before, whole)
	}
	ReleaseProgram()
	if after := residentFiles(t); after > before-whole/4 { // what runs comes back with its neighbors
		t.Errorf("%d bytes of files are in memory, %d before, %d of the program", after, before, whole)
	}
}

// residentFiles is how much of all mapped files is in this process' memory.
func residentFiles(t *testing.T) (bytes int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kib, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.Atoi(strings.TrimSpace(kib))
	if err != nil {
		t.Fatalf("%v in %s", err, status)
	}
	return n << 10
}

// TestUnwritten: a part of a file that has been written to in memory only is known, as releasing it
// would undo that.
func TestUnwritten(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a file")
	page := os.Getpagesize()
	if err := os.WriteFile(path, make([]byte, 2*page), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := unix.Mmap(int(file.Fd()), 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	unwritten := func(want bool) {
		t.Helper()
		found := false
		release(smaps, func(m mapping) bool {
			if m.path == path {
				found = true
				if m.unwritten() != want {
					t.Errorf("unwritten is %v, want %v", m.unwritten(), want)
				}
			}
			return false
		})
		if !found {
			t.Errorf("%s is not found", path)
		}
	}
	if memory[0] != 0 {
		t.Fatal("the file is not empty")
	}
	unwritten(true)
	memory[page] = 1
	unwritten(false)
}

// TestMappings: what has own pages that are swapped out has been written to, and of maps it is not known.
func TestMappings(t *testing.T) {
	const header = "00400000-02d74000 r-xp 00000000 fe:00 9979854    /opt/a dir/kontiki\n"
	for _, c := range []struct {
		text string
		want bool
	}{
		{header + "Rss: 33872 kB\nAnonymous:     0 kB\nSwap:     0 kB\nVmFlags: rd ex mr mw me\n", true},
		{header + "Rss: 33872 kB\nAnonymous:     4 kB\nSwap:     0 kB\nVmFlags: rd ex mr mw me\n", false},
		{header + "Rss: 33872 kB\nAnonymous:     0 kB\nSwap:     4 kB\nVmFlags: rd ex mr mw me\n", false},
		{header, false},
	} {
		found := mappings(c.text)
		if len(found) != 1 || found[0].path != "/opt/a dir/kontiki" || found[0].inode != "9979854" || found[0].to-found[0].from != 0x2974000 || found[0].unwritten() != c.want {
			t.Errorf("%s: %+v", c.text, found)
		}
	}
}
