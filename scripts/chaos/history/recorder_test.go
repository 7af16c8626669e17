package history

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestFile: what is in memory is in the file, and the file can be read back, also one whose end is torn.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	r, err := NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Add(Op{ID: r.NextID(), Kind: List, Resource: "pods", Return: r.Now(), Outcome: OK, RV: 7, Items: []Item{{Key: "pods/a", RV: 5, Value: "v"}}})
	watch := r.NextID()
	r.Open(Watch{ID: watch, Resource: "pods", From: 7})
	r.Saw(watch, Event{At: r.Now(), Type: "ADDED", Key: "pods/b", RV: 8, Value: "w"})
	r.Note("kill n1")
	r.Note("start n1")
	r.Saw(watch, Event{At: r.Now(), Type: "BOOKMARK", RV: 9, Last: true})
	r.Owe(watch, 9)
	r.Digest(Digest{Node: "n1", Index: 9, Digest: "d", Term: 2})
	if open := r.History(); len(open.Watches) != 1 || len(open.Watches[0].Events) != 2 || open.Watches[0].Owed != 9 {
		t.Errorf("with a watch open: %+v", open.Watches)
	}
	r.End(watch, 410, "expired")
	r.Saw(watch, Event{RV: 10}) // too late
	want := r.History()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(whole, `{"op":{"id`...), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := Read(file); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back: %+v, %v\nwant: %+v", got, err, want)
	}
}

// TestFull: memory is bounded, and a history that is not whole says so.
func TestFull(t *testing.T) {
	r, err := NewRecorder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.limit = 3
	for range 5 {
		r.Add(Op{ID: r.NextID()})
	}
	if h := r.History(); len(h.Ops) != 3 || !h.Cut || !r.Full() {
		t.Errorf("%d calls kept, cut %v", len(h.Ops), h.Cut)
	}
}
