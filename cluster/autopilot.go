package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// minVoters is how many voters a removal without a person must leave: two tolerate no loss.
const minVoters = 3

// autopilot is what a leader remembers from one look at the cluster to the next. A new
// leader starts anew, which only makes it slower.
type autopilot struct {
	caughtUp map[string]time.Time // since when a node without a vote has been, without a break
	silent   map[string]silence   // voters that do not answer
}

// silence begins when neither gossip nor TCP shows a voter.
type silence struct {
	since  time.Time
	voters int // how many there were then, with it
}

func newAutopilot() *autopilot {
	return &autopilot{caughtUp: make(map[string]time.Time), silent: make(map[string]silence)}
}

// stable says whether a node has been caught up for long enough to get a vote: one that
// restarts every few seconds would hold up every commit that needs it.
func (p *autopilot) stable(name string, caughtUp bool, now time.Time, wait time.Duration) bool {
	if !caughtUp {
		delete(p.caughtUp, name)
		return false
	}
	since, known := p.caughtUp[name]
	if !known {
		p.caughtUp[name], since = now, now
	}
	if now.Sub(since) < wait {
		return false
	}
	delete(p.caughtUp, name)
	return true
}

// look notes who answers and returns the voter to remove, or nothing. All of this must hold:
//
//   - it has been silent for DeadAfter, on TCP and in gossip alike, without a break
//   - a majority of the voters answers, and a majority of those that are left
//   - at least minVoters are left
//   - it has been replaced: there are no fewer voters left than when it fell silent. A leader
//     that came later does not know that number, but an odd one is what people make clusters
//     of, and the replacement made it even
//
// One at a time: the next look sees what the removal has done.
func (p *autopilot) look(voters []string, answers func(name string) bool, now time.Time, wait time.Duration) (dead string) {
	answering := 0
	for _, name := range voters {
		if answers(name) {
			answering++
			delete(p.silent, name)
		} else if _, known := p.silent[name]; !known {
			p.silent[name] = silence{now, len(voters)}
		}
	}
	for name := range p.silent {
		if !slices.Contains(voters, name) {
			delete(p.silent, name)
		}
	}
	left := len(voters) - 1
	if left < minVoters || answering < len(voters)/2+1 {
		return ""
	}
	for _, name := range voters {
		s, silent := p.silent[name]
		replaced := left >= s.voters || left%2 == 1
		if silent && replaced && now.Sub(s.since) >= wait && (dead == "" || s.since.Before(p.silent[dead].since)) {
			dead = name
		}
	}
	return dead
}

// removeDead is the only way by which a node is removed without a person.
func (n *Node) removeDead(ctx context.Context, p *autopilot, states map[string]memberState) error {
	answers := func(name string) bool {
		m, gossips := n.roster.get(name)
		_, answered := states[name]
		return name == n.cfg.Name || answered || gossips && m.alive
	}
	dead := p.look(n.voters(), answers, time.Now(), n.cfg.DeadAfter)
	if dead == "" {
		return nil
	}
	n.logger.Warn("a voter is gone and has been replaced", "name", dead, "silent-since", p.silent[dead].since)
	return n.removeServer(ctx, raft.ServerID(dead))
}
