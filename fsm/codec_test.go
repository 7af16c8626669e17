package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var updateGolden = flag.Bool("update", false, "rewrite the files in testdata")

// golden compares got with a file in testdata, in a directory that is named by
// the version of its format. A difference means that nodes of two builds would
// not understand each other.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *updateGolden {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

var sampleCommands = []Command{
	{Op: OpCreate, ID: id(1), Base: 7, Key: "/core/pods/ns/a", Value: []byte("hello"), Expires: 1700000000},
	{Op: OpUpdate, ID: id(math.MaxUint64 - 1), Base: math.MaxUint64, Key: "/x", Expect: 300, Expires: -1},
	{Op: OpUpdate, ID: id(3), Key: "/x", Value: bytes.Repeat([]byte{0xff}, 200), Expires: math.MinInt64},
	{Op: OpDelete, ID: id(4), Base: 1, Key: "/" + strings.Repeat("k", MaxKey-1), Expect: 1},
	{Op: OpRestore, ID: id(5), Base: 300, Key: "/kontiki/restore/one/"},
}

func TestCommandRoundTrip(t *testing.T) {
	var lines bytes.Buffer
	for _, c := range sampleCommands {
		b := c.Append([]byte("before"))
		got, err := DecodeCommand(b[len("before"):])
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("got %+v, %v, want %+v", got, err, c)
		}
		fmt.Fprintf(&lines, "%x\n", b[len("before"):])
	}
	golden(t, "v1/commands.txt", lines.Bytes())
}

func TestCommandRefused(t *testing.T) {
	good := sampleCommands[0]
	change := func(fn func(*Command)) []byte { c := good; fn(&c); return c.Append(nil) }
	patch := func(at int, b byte) []byte { p := good.Append(nil); p[at] = b; return p }
	padded := append(good.Append(nil)[:18:18], 0x87, 0x00) // base 7 in two bytes
	padded = append(padded, good.Append(nil)[19:]...)
	for _, test := range []struct {
		name, want string
		in         []byte
	}{
		{"empty", "ends early", nil},
		{"version", "version 2", patch(0, 2)},
		{"op 0", "unknown operation 0", patch(1, 0)},
		{"op 5", "unknown operation 5", patch(1, 5)},
		{"trailing", "trailing", append(good.Append(nil), 0)},
		{"padded", "padded", padded},
		{"no id", "no id", change(func(c *Command) { c.ID = ID{} })},
		{"no key", "does not start", change(func(c *Command) { c.Key = "" })},
		{"relative", "does not start", change(func(c *Command) { c.Key = "core" })},
		{"long key", "field of 4097 bytes", change(func(c *Command) { c.Key = "/" + strings.Repeat("k", MaxKey) })},
		{"long value", "field of 16777217 bytes", change(func(c *Command) { c.Value = make([]byte, MaxValue+1) })},
		{"create expects", "create with", change(func(c *Command) { c.Expect = 1 })},
		{"restore elsewhere", "restore of", change(func(c *Command) { *c = Command{Op: OpRestore, ID: c.ID, Key: "/core/pods/"} })},
		{"restore all", "restore of", change(func(c *Command) { *c = Command{Op: OpRestore, ID: c.ID, Key: StagingPrefix} })},
		{"restore expects", "restore of", change(func(c *Command) {
			*c = Command{Op: OpRestore, ID: c.ID, Key: StagingPrefix + "a/", Expect: 1}
		})},
		{"delete value", "delete with", change(func(c *Command) { c.Op = OpDelete })},
	} {
		if _, err := DecodeCommand(test.in); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
	}
	whole := good.Append(nil)
	for n := range whole {
		if _, err := DecodeCommand(whole[:n]); err == nil {
			t.Errorf("first %d of %d bytes decoded", n, len(whole))
		}
	}
}

func TestResultRoundTrip(t *testing.T) {
	entry := &Entry{Key: "/core/pods/ns/a", Value: []byte("hello"), CreateIndex: 3, ModIndex: 400, Expires: -5}
	var lines bytes.Buffer
	for _, r := range []Result{
		{Code: OK, Index: 1},
		{Code: Conflict, Index: math.MaxUint64, Current: entry},
		{Code: Exists, Index: 9, Current: &Entry{Key: "/x"}},
		{Code: Forgotten, Index: 10},
	} {
		b := r.Append(nil)
		got, err := DecodeResult(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
		for n := range b {
			if _, err := DecodeResult(b[:n]); err == nil {
				t.Errorf("first %d of %d bytes decoded", n, len(b))
			}
		}
		if _, err := DecodeResult(append(b, 0)); err == nil {
			t.Error("trailing byte decoded")
		}
		fmt.Fprintf(&lines, "%x\n", b)
	}
	golden(t, "v1/results.txt", lines.Bytes())
}

func TestResultRefused(t *testing.T) {
	for _, b := range [][]byte{{2, 0, 1, 0}, {1, 5, 1, 0}, {1, 0, 1, 2}} {
		if r, err := DecodeResult(b); err == nil {
			t.Errorf("%x decoded to %+v", b, r)
		}
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(OpCreate, OpUpdate, OpDelete, OpRestore, Op(9), OK, Exists, NotFound, Conflict, Forgotten, Code(9))
	if want := "create update delete restore op 9 ok exists not found conflict forgotten code 9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range sampleCommands {
		f.Add(c.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCommand(b)
		if err != nil {
			return
		}
		if again := c.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("decoded %x, which encodes to %x", b, again)
		}
	})
}
