package fsm

import "testing"

func TestRetryIsAppliedOnce(t *testing.T) {
	var rec recorder
	f := New(&rec)
	c := create("/r/a", "x")
	c.ID = id(1)
	first := apply(f, c)
	apply(f, remove("/r/a", 0))
	again := apply(f, c)
	if first.Code != OK || again.Code != OK || again.Index != first.Index {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if f.View().Len() != 0 || len(rec.events) != 2 || f.Index() != 3 {
		t.Errorf("%d entries, %d events, index %d", f.View().Len(), len(rec.events), f.Index())
	}

	lost := update("/r/a", "x", 0) // a failed precondition is remembered as well
	lost.ID = id(2)
	first = apply(f, lost)
	apply(f, create("/r/a", "y"))
	if again = apply(f, lost); again.Code != NotFound || again.Index != first.Index {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

// TestForgotten lets ids 1 and 2 of a ring of 3 be evicted (indexes 1, 2), and
// wants the same answers from the FSM and from one restored from its snapshot.
func TestForgotten(t *testing.T) {
	for _, test := range []struct {
		name     string
		id, base uint64
		code     Code
		index    uint64
	}{
		{"evicted", 1, 0, Forgotten, 6},
		{"evicted last", 2, 1, Forgotten, 6},
		{"remembered, in spite of its base", 3, 0, OK, 3},
		{"new, but may be old", 9, 1, Forgotten, 6},
		{"new, base at the newest evicted", 9, 2, OK, 6},
		{"new", 9, 5, OK, 6},
	} {
		for _, through := range []string{"log", "snapshot"} {
			f := newFSM(3)
			for i := range uint64(5) {
				c := create("/r/"+string(rune('a'+i)), "")
				c.ID, c.Base = id(i+1), i
				if res := apply(f, c); res.Code != OK {
					t.Fatalf("prepare: %+v", res)
				}
			}
			if through == "snapshot" {
				old := f
				f = newFSM(3)
				mustRestore(t, f, persist(t, old))
			}
			digest := f.View().Digest()
			c := create("/r/z", "")
			c.ID, c.Base = id(test.id), test.base
			res := apply(f, c)
			if res.Code != test.code || res.Index != test.index {
				t.Errorf("%s through %s: got %+v, want %s at %d", test.name, through, res, test.code, test.index)
			}
			if changed := res.Index == 6 && res.Code == OK; changed != (f.View().Digest() != digest) {
				t.Errorf("%s through %s: changed %t", test.name, through, !changed)
			}
		}
	}
}

// TestRingIsFrozen reads the ring of an old view after the FSM reused it.
func TestRingIsFrozen(t *testing.T) {
	f := newFSM(4)
	var views []*View
	var digests [][32]byte
	for range 50 {
		apply(f, create("/r/a", "")) // fails but for the first time, and is remembered
		views = append(views, f.View())
		digests = append(digests, f.View().Digest())
	}
	for i, v := range views {
		if v.Digest() != digests[i] {
			t.Errorf("view %d changed", i)
		}
	}
	if n := len(f.state.memory.known); n != 4 {
		t.Errorf("%d ids known, want 4", n)
	}
}
