package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a small state with everything in it.
func sample() *FSM {
	f := newFSM(5)
	for _, c := range []Command{
		create("/core/pods/ns/a", "one"), create("/core/pods/ns/b", "two"), create("/core/nodes/n", "three"),
		update("/core/pods/ns/a", "four", 1), remove("/core/pods/ns/b", 9), remove("/core/pods/ns/b", 2),
		{Op: OpCreate, Key: "/core/events/ns/e", Value: []byte("five"), Expires: 1700000000},
	} {
		apply(f, c)
	}
	return f
}

func TestSnapshotGolden(t *testing.T) {
	f := sample()
	golden(t, "v2/snapshot.bin", persist(t, f))
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) { testSnapshotGolden(t, f, filepath.Join("testdata", version, "snapshot.bin")) })
	}
}

// testSnapshotGolden reads a snapshot of f as a release of that time wrote it.
func testSnapshotGolden(t *testing.T, f *FSM, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rec recorder
	restored := newFSM(5, &rec)
	mustRestore(t, restored, b)
	if restored.View().Digest() != f.View().Digest() || restored.Index() != 7 || fmt.Sprint(rec.restored) != "[7]" {
		t.Errorf("index %d, observed %v, or digests differ", restored.Index(), rec.restored)
	}
	if dump(restored.View()) != dump(f.View()) {
		t.Errorf("got\n%swant\n%s", dump(restored.View()), dump(f.View()))
	}
}

func TestSnapshotIsOfItsMoment(t *testing.T) {
	f := sample()
	snap, _ := f.Snapshot()
	want := f.View().Digest()
	apply(f, create("/r/later", ""))
	var s sink
	if err := snap.Persist(&s); err != nil {
		t.Fatal(err)
	}
	g := newFSM(5)
	mustRestore(t, g, s.Bytes())
	if g.View().Digest() != want || g.Index() != 7 {
		t.Error("the snapshot has what came after it")
	}
}

func TestPersistFails(t *testing.T) {
	size := len(persist(t, sample()))
	for n := 1; n < size; n++ {
		s := sink{failAfter: n}
		if err := (&snapshot{sample().View()}).Persist(&s); !errors.Is(err, io.ErrShortWrite) || !s.canceled || s.closed {
			t.Fatalf("after %d bytes: %v, canceled %t, closed %t", n, err, s.canceled, s.closed)
		}
	}
	v := sample().View()
	if err := v.Rewind(3, nil).WriteSnapshot(io.Discard); err == nil {
		t.Error("a rewound view was written")
	}
}

func TestSnapshotTools(t *testing.T) {
	b := persist(t, sample())
	want := Header{Version: 2, Index: 7, Entries: 3, Remembered: 5, Evicted: 2}
	if h, err := ReadSnapshotHeader(bytes.NewReader(b[:headerSize])); h != want || err != nil {
		t.Errorf("header %+v, %v", h, err)
	}
	if h, err := VerifySnapshot(bytes.NewReader(b)); h != want || err != nil {
		t.Errorf("verify %+v, %v", h, err)
	}
	keys := ""
	_, err := ScanSnapshot(bytes.NewReader(b), func(e *Entry) { keys += e.Key + " " })
	if keys != "/core/events/ns/e /core/nodes/n /core/pods/ns/a " || err != nil {
		t.Errorf("scanned %s, %v", keys, err)
	}
}

// TestRestoreRefuses damages a snapshot in every place, and wants an error and
// an untouched state each time.
func TestRestoreRefuses(t *testing.T) {
	good := persist(t, sample())
	f := newFSM(5)
	apply(f, create("/r/mine", ""))
	view := f.View()
	refuse := func(what, want string, b []byte) {
		t.Helper()
		if err := restore(f, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", what, err, want)
		}
		if f.View() != view || f.state.get("/r/mine") == nil || f.state.get("/core/nodes/n") != nil {
			t.Fatalf("%s: the state was touched", what)
		}
	}
	for n := range good {
		refuse(fmt.Sprintf("first %d bytes", n), "truncated", good[:n])
	}
	for bit := range len(good) * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		refuse(fmt.Sprintf("bit %d", bit), "snapshot: ", b)
	}
	refuse("trailing", "bytes after the end", append(bytes.Clone(good), 0))
	refuse("foreign", "not a kontiki snapshot", bytes.Repeat([]byte("x"), 100))
	newer := bytes.Clone(good)
	binary.BigEndian.PutUint32(newer[len(snapshotMagic):], 3)
	refuse("newer", "format version 3, this program knows 1 to 2: use the release", newer)
	many := newFSM(6)
	for range 6 {
		apply(many, create("/r/a", ""))
	}
	refuse("larger memory", "6 remembered commands, at most 5", persist(t, many))
}

// TestRestoreRefusesNonsense writes snapshots with right checksums and wrong
// contents.
func TestRestoreRefusesNonsense(t *testing.T) {
	write := func(fn func(*View)) []byte {
		f := newFSM(5)
		v := f.View()
		v.index = 9
		v.ring = []remembered{{id(1), 2, OK}, {id(2), 3, Exists}}
		v.entries.Set(&Entry{Key: "/a", CreateIndex: 1, ModIndex: 2})
		fn(v)
		var b bytes.Buffer
		if err := v.WriteSnapshot(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if err := restore(newFSM(5), write(func(*View) {})); err != nil {
		t.Fatal(err)
	}
	for want, fn := range map[string]func(*View){
		"offset 10 is past":            func(v *View) { v.offset = 10 },
		"evicted index 10":             func(v *View) { v.evicted = 10 },
		"impossible remembered":        func(v *View) { v.evicted = 2 },
		"with index 1":                 func(v *View) { v.ring[1].index = 1 },
		"with index 10":                func(v *View) { v.ring[1].index = 10 },
		"forgotten":                    func(v *View) { v.ring[0].code = Forgotten },
		"impossible remembered comman": func(v *View) { v.ring[1].id = v.ring[0].id },
		"impossible indexes 3, 2":      func(v *View) { v.entries.Set(&Entry{Key: "/a", CreateIndex: 3, ModIndex: 2}) },
		"impossible indexes 0, 2":      func(v *View) { v.entries.Set(&Entry{Key: "/a", ModIndex: 2}) },
		"impossible indexes 1, 10":     func(v *View) { v.entries.Set(&Entry{Key: "/a", CreateIndex: 1, ModIndex: 10}) },
		"does not start with":          func(v *View) { v.entries.Set(&Entry{Key: "b", CreateIndex: 1, ModIndex: 1}) },
		"out of order": func(v *View) {
			e, _ := v.Get("/a")
			v.entries.Set(&Entry{Key: "/b", CreateIndex: 1, ModIndex: 1})
			e.Key = "/c"
		},
		"field of 4097 bytes": func(v *View) {
			v.entries.Set(&Entry{Key: "/" + strings.Repeat("k", MaxKey), CreateIndex: 1, ModIndex: 1})
		},
	} {
		if err := restore(newFSM(5), write(fn)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// FuzzRestore restores damaged snapshots: that is an error which leaves the
// state alone, or a state which is written back as it was read.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(nil))
	for _, from := range []*FSM{newFSM(5), sample()} {
		var b bytes.Buffer
		if err := from.View().WriteSnapshot(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		to := newFSM(5)
		before := to.View()
		if err := restore(to, b); err != nil {
			if to.View() != before || to.state.entries.Len() != 0 {
				t.Error("a failed restore touched the state")
			}
			return
		}
		if h, _ := ReadSnapshotHeader(bytes.NewReader(b)); h.Version != snapshotVersion {
			return // it would be written in the present version
		}
		if again := persist(t, to); !bytes.Equal(again, b) {
			t.Errorf("restored %x, which is written as %x", b, again)
		}
	})
}
