package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// TestWithFSM joins hub and FSM. On many goroutines it takes a view, lists it at
// an older index, watches from there to the view, and wants the view.
func TestWithFSM(t *testing.T) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	h := NewHub(Config{MaxEvents: 200})
	f := fsm.New(h)
	const last = 3000
	var done sync.WaitGroup
	for i := range 6 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		done.Go(func() {
			for f.Index() < last && !t.Failed() {
				checkHistory(t, f, h, r)
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for f.Index() < last {
		var logs []*raft.Log
		for i := range uint64(1 + r.IntN(4)) {
			logs = append(logs, randomLog(r, f.Index()+i+1))
		}
		f.ApplyBatch(logs)
	}
	done.Wait()
}

func randomLog(r *rand.Rand, index uint64) *raft.Log {
	c := fsm.Command{Op: fsm.Op(1 + r.IntN(3)), Base: index - 1, Key: fmt.Sprintf("%sns/%02d", pods, r.IntN(20))}
	c.ID[0] = 1
	for i := range 8 {
		c.ID[8+i] = byte(index >> (8 * i))
	}
	if c.Op != fsm.OpDelete {
		c.Value = fmt.Append(nil, index)
	}
	return &raft.Log{Index: index, Type: raft.LogCommand, Data: c.Append(nil)}
}

func checkHistory(t *testing.T, f *fsm.FSM, h *Hub, r *rand.Rand) {
	v := f.View()
	from := v.Index() - min(v.Index(), r.Uint64N(100))
	past, err := h.Since(pods, from, v.Index())
	if errors.Is(err, ErrExpired) {
		return
	}
	state := map[string]string{}
	v.Rewind(from, past).Ascend(pods, "", func(e *fsm.Entry) bool {
		state[e.Key] = string(e.Value)
		return true
	})
	c, err := h.Subscribe(pods, from)
	if err != nil {
		return
	}
	defer c.Close()
	for c.Position() < v.Index() {
		events, err := c.Next(t.Context())
		if err != nil {
			return
		}
		for _, ev := range events {
			if ev.Index > v.Index() {
				break
			}
			if old := ev.Old; (old == nil) != (state[ev.Key()] == "") || old != nil && state[ev.Key()] != string(old.Value) {
				t.Errorf("event %d replaces what the rewound view at %d does not have", ev.Index, from)
			}
			delete(state, ev.Key())
			if ev.New != nil {
				state[ev.Key()] = string(ev.New.Value)
			}
		}
	}
	want := map[string]string{}
	v.Ascend(pods, "", func(e *fsm.Entry) bool {
		want[e.Key] = string(e.Value)
		return true
	})
	if fmt.Sprint(state) != fmt.Sprint(want) {
		t.Errorf("list at %d and watch to %d give\n%v, want\n%v", from, v.Index(), state, want)
	}
}
