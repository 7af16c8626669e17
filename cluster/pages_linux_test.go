package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestReleaseLog: what is read of a log does not stay in this process' memory for good, in
// whatever directory it lies, and can be read again.
func TestReleaseLog(t *testing.T) {
	const most = 1 << 20
	real := filepath.Join(t.TempDir(), "a dir, with /slashes")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, dir); err != nil {
		t.Fatal(err)
	}
	s, _ := testStorage(t, dir, nil)
	s.logs.deadline = time.Minute // this is not about slow disks
	logs := entries(1, 4096)
	for _, log := range logs {
		log.Data = Noise(log.Index, 1600)
	}
	if err := s.logs.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	readAll := func() {
		for _, log := range logs {
			var got raft.Log
			if err := s.logs.GetLog(log.Index, &got); err != nil || !bytes.Equal(got.Data, log.Data) {
				t.Fatalf("entry %d: %v", log.Index, err)
			}
		}
	}
	readAll()
	path, err := filepath.EvalSymlinks(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	if mapped := residentOf(t, path); mapped < 2*most {
		t.Fatalf("%d bytes are mapped after all has been read: nothing is tried here", mapped)
	}
	for i := range uint64(releaseEvery + 1) { // a release follows an answer, and the next write follows it
		if err := s.logs.SetUint64([]byte("k"), i); err != nil {
			t.Fatal(err)
		}
	}
	if mapped := residentOf(t, path); mapped > most {
		t.Errorf("%d bytes are still mapped, want at most %d", mapped, most)
	}
	readAll()
	if err := s.logs.DeleteRange(1, 4000); err != nil {
		t.Fatal(err)
	}
	if mapped := residentOf(t, path); mapped > most {
		t.Errorf("%d bytes are mapped after a compaction, want at most %d", mapped, most)
	}
}

// residentOf is how much of a mapped file is in this process' memory.
func residentOf(t *testing.T, path string) (bytes int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	found, inside := false, false
	for line := range strings.Lines(string(smaps)) {
		switch kib, isRss := strings.CutPrefix(line, "Rss:"); {
		case mapping.MatchString(line):
			inside = strings.HasSuffix(line, path+"\n")
			found = found || inside
		case isRss && inside:
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kib), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			bytes += n << 10
		}
	}
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	return bytes
}

// mapping is how an entry of smaps begins.
var mapping = regexp.MustCompile(`^[0-9a-f]+-[0-9a-f]+ `)
