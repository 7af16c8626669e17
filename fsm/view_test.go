package fsm

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// TestDigestSees wants a different digest for each difference that matters.
func TestDigestSees(t *testing.T) {
	seen := map[[32]byte]int{}
	expiring := create("/r/a", "x")
	expiring.Expires = 1
	renamed := create("/r/a", "x")
	renamed.ID = id(7)
	for i, log := range [][]Command{
		{},
		{create("/r/a", "x")},
		{create("/r/a", "y")},
		{create("/r/b", "x")},
		{expiring},
		{renamed},
		{create("/r/a", "x"), update("/r/a", "x", 0)},
		{create("/r/a", "x"), create("/r/a", "x")},
		{create("/r/a", "x"), remove("/r/a", 0)},
	} {
		f := New()
		for _, c := range log {
			apply(f, c)
		}
		if j, twice := seen[f.View().Digest()]; twice {
			t.Errorf("logs %d and %d have one digest", j, i)
		}
		seen[f.View().Digest()] = i
	}
	f := New()
	f.ApplyBatch([]*raft.Log{{Index: 5, Type: raft.LogConfiguration}})
	if seen[f.View().Digest()] != 0 {
		t.Error("an entry that changes nothing changes the digest")
	}
}

// TestRewind reproduces every earlier state from the last one.
func TestRewind(t *testing.T) {
	for seed := range uint64(5) {
		var rec recorder
		s := newScenario(t, seed, 30)
		f := newFSM(100, &rec)
		states := []string{dump(f.View())}
		for _, log := range s.log(300) {
			f.Apply(log)
			for uint64(len(states)) <= log.Index {
				states = append(states, states[len(states)-1])
			}
			states[log.Index] = dump(f.View())
		}
		last, digest := f.View(), f.View().Digest()
		for index, want := range states {
			v := last.Rewind(uint64(index), rec.events)
			if v.Index() != uint64(index) || dump(v) != want {
				t.Fatalf("rewound to %d, got index %d\n%swant\n%s", index, v.Index(), dump(v), want)
			}
		}
		if v := last.Rewind(last.Index()+5, rec.events); v != last {
			t.Error("rewound to the future")
		}
		if f.View().Digest() != digest {
			t.Error("rewinding changed the view")
		}
		old := last.Rewind(last.Index()/2, rec.events)
		if dump(old.Rewind(7, rec.events)) != states[7] {
			t.Error("a rewound view does not rewind")
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	f := New()
	for _, key := range []string{"/a\xff", "/a\xffb", "/b", "/\xff\xff"} {
		apply(f, create(key, ""))
	}
	got := ""
	for _, prefix := range []string{"", "/", "/a", "/a\xff", "/\xff", "/\xff\xff", "/c", "\xff"} {
		got += fmt.Sprint(f.View().Count(prefix, ""), " ")
	}
	if want := "4 4 2 2 1 1 0 0 "; got != want {
		t.Errorf("counts %s, want %s", got, want)
	}
}
