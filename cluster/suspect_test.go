package cluster

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestLostLeader: the end of the last leader's connection counts, also when raft has forgotten its
// leader because another voter was faster.
func TestLostLeader(t *testing.T) {
	n := &Node{lost: make(chan string, 1)}
	n.lostConn("n1")
	leader := raft.ServerID("n1")
	n.led.Store(&leader)
	n.lostConn("n2")
	if len(n.lost) != 0 {
		t.Fatal("who did not lead is missed")
	}
	n.lostConn("n1")
	if len(n.lost) != 1 {
		t.Error("the leader is not missed")
	}
}

// TestRefusedSoon: a process that ends may accept a connection or two after it has closed others.
func TestRefusedSoon(t *testing.T) {
	for _, c := range []struct {
		answers string // a: accepted, r: refused, s: silent
		refused bool
		dials   int
	}{
		{"r", true, 1}, {"aar", true, 3}, {"s", false, 1}, {"as", false, 2}, {"aaaaaaaaaaaaaaaaaaaaaaa", false, refusalTries},
	} {
		dials := 0
		refused := refusedSoon(func() (refused, accepted bool) {
			dials++
			return c.answers[dials-1] == 'r', c.answers[dials-1] == 'a'
		}, func(time.Duration) bool { return true })
		if refused != c.refused || dials != c.dials {
			t.Errorf("%s: %v after %d dials, want %v after %d", c.answers, refused, dials, c.refused, c.dials)
		}
	}
}

// TestVotesPastDeadConns: a vote is asked for again when the connection was dead, and only then.
func TestVotesPastDeadConns(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		errs []error
		want error
	}{
		{[]error{nil}, nil},
		{[]error{io.EOF, fmt.Errorf("read: %w", io.EOF), nil}, nil},
		{[]error{io.EOF, refused}, refused},
		{[]error{io.EOF, io.EOF, io.EOF, io.EOF, io.EOF}, io.EOF}, // peerPool and a new one
	} {
		asked := 0
		err := pastDeadConns(func() error { asked++; return c.errs[asked-1] })
		if err != c.want || asked != len(c.errs) {
			t.Errorf("%v: %v after %d", c.errs, err, asked)
		}
	}
}
