package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestWhomToRemove goes through looks at a cluster, a minute apart each.
func TestWhomToRemove(t *testing.T) {
	for _, test := range []struct {
		name  string
		looks []string // voters, those in capitals are silent
		want  string   // removed at the last look
	}{
		{"all are there", []string{"abcde", "abcde"}, ""},
		{"not silent for long enough", []string{"abcD"}, ""},
		{"nobody in its place", []string{"abC", "abC", "abC"}, ""},
		{"nor in one of five", []string{"abcdE", "abcdE", "abcdE"}, ""},
		{"replaced", []string{"abC", "abCd"}, "C"},
		{"replaced, among five", []string{"abcdE", "abcdEf"}, "E"},
		{"replaced before this leader came", []string{"abCd", "abCd"}, "C"},
		{"it came back meanwhile", []string{"abC", "abcd", "abCd"}, ""},
		{"two replaced, one at a time", []string{"abcDE", "abcDEfg"}, "D"},
		{"the second of two", []string{"abcDE", "abcDEfg", "abcEfg"}, "E"},
		{"half of them are silent", []string{"abCD", "abCD", "abCD"}, ""},
		{"most are silent", []string{"aBCd", "aBCd", "aBCd"}, ""},
		{"two would be left", []string{"ab", "abC", "abC"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, now, got := newAutopilot(), time.Now(), ""
			for _, look := range test.looks {
				var voters []string
				for _, c := range look {
					voters = append(voters, strings.ToLower(string(c)))
				}
				got = p.look(voters, func(name string) bool { return strings.Contains(look, name) }, now, time.Minute)
				now = now.Add(time.Minute)
			}
			if got != strings.ToLower(test.want) {
				t.Errorf("%q is removed, want %q", got, test.want)
			}
		})
	}
}

// TestStable: a vote takes an unbroken time.
func TestStable(t *testing.T) {
	p, start := newAutopilot(), time.Now()
	var got []bool
	for i, caughtUp := range []bool{true, true, false, true, true, true, true} {
		got = append(got, p.stable("a", caughtUp, start.Add(time.Duration(i)*time.Second), 3*time.Second))
	}
	if want := []bool{false, false, false, false, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTransferWatch: a leader that refuses for longer than a transfer can take, without a
// command that went through in between, ends its process (hashicorp/raft#696).
func TestTransferWatch(t *testing.T) {
	inProgress := raft.ErrLeadershipTransferInProgress
	for _, test := range []struct {
		name    string
		results []error // one every half a transferLimit
		fatal   bool
	}{
		{"a transfer that ends", []error{inProgress, inProgress, nil, inProgress, inProgress, nil}, false},
		{"one that ends with a step-down", []error{inProgress, inProgress, raft.ErrNotLeader, inProgress, inProgress}, false},
		{"one that never ends", []error{inProgress, inProgress, inProgress, inProgress}, true},
		{"that others fail meanwhile", []error{inProgress, raft.ErrEnqueueTimeout, inProgress, inProgress}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &Node{cfg: DefaultConfig(), logger: hclog.NewNullLogger(), fatal: make(chan error, 1), applied: make(chan struct{}, 1)}
				n.ctx, n.cancel = context.WithCancel(t.Context())
				defer n.cancel()
				for _, result := range test.results {
					if v := n.judge(result); result == inProgress && v != refused {
						t.Errorf("the verdict is %d", v)
					}
					time.Sleep(n.transferLimit()/2 + time.Millisecond)
				}
				select {
				case err := <-n.Fatal():
					if !test.fatal || !errors.Is(err, ErrStuckTransfer) {
						t.Errorf("the process would end: %v", err)
					}
				default:
					if test.fatal {
						t.Error("the process goes on")
					}
				}
			})
		})
	}
}
