package storage

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

func replaced(n, size int) []fsm.Event {
	events := make([]fsm.Event, n)
	for i := range events {
		old := &fsm.Entry{Key: fmt.Sprint(i), Value: make([]byte, size)}
		old.SetMemo(i)
		events[i] = fsm.Event{Old: old}
	}
	return events
}

// TestReplacedVersionsLoseTheirObjects: the last of them keep theirs, and one that
// lost it keeps no other.
func TestReplacedVersionsLoseTheirObjects(t *testing.T) {
	for name, test := range map[string]struct{ size, kept int }{
		"by number": {10, maxReplaced},
		"by bytes":  {1 << 20, maxReplacedBytes >> 20},
	} {
		m := NewMemos(DefaultDecodedBytes)
		events := replaced(maxReplaced+100, test.size)
		for i := range events {
			m.OnApply(0, events[i:i+1])
		}
		for i, event := range events {
			if has, want := event.Old.Memo() != nil, i >= len(events)-test.kept; has != want {
				t.Fatalf("%s: version %d of %d has a memo: %v", name, i, len(events), has)
			}
		}
		if old := events[0].Old; old.SetMemo("again") != "again" || old.Memo() != nil {
			t.Errorf("%s: a version that lost its memo keeps another one", name)
		}
	}
}

// TestTooMuchDecoded: past the bound all current versions lose what they kept, and
// keep it again afterwards.
func TestTooMuchDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := fsm.New()
		command := fsm.Command{Op: fsm.OpCreate, ID: fsm.ID{1}, Key: "/core/pods/a", Value: []byte("v")}
		machine.Apply(&raft.Log{Index: 1, Type: raft.LogCommand, Data: command.Append(nil)})
		entry, _ := machine.View().Get("/core/pods/a")
		m := NewMemos(10 * decodedBytes(1000))
		for range 9 {
			entry.SetMemo("kept")
			m.add(decodedBytes(1000), machine.View)
			synctest.Wait()
			if entry.Memo() == nil {
				t.Fatal("the memo went before the bound was reached")
			}
		}
		m.add(decodedBytes(1000), machine.View)
		synctest.Wait()
		if entry.Memo() != nil {
			t.Error("the memo stayed past the bound")
		}
		if entry.SetMemo("new"); entry.Memo() != "new" {
			t.Error("a current version must keep a new memo")
		}
	})
}
