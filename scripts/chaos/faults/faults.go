// Package faults is the table of what chaos does to a cluster: one row a fault.
package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"kontiki/scripts/chaos/site"
)

// Fault is one row: something that goes wrong for a while.
type Fault struct {
	Name   string
	Covers string // numbers of the list of faults in the ledger (README.md)

	// Network faults need machines that are isolated from each other.
	Network bool

	// Alone faults are not paired: they end their own cluster, or cannot be told from what
	// the other one did.
	Alone bool

	// Silences: processes do not answer, nor take other faults, until it is healed.
	Silences bool

	// For is how long it lasts before it is healed, at least and at most.
	For [2]time.Duration

	// Inject begins it and returns how it ends. The heal leaves the site as a new one, but
	// for what the cluster itself has to catch up with.
	Inject func(context.Context, *Scene) (heal func() error, err error)
}

// Scene is where one fault happens, and the luck that decides whom it hits.
type Scene struct {
	*site.Site
	Luck *rand.Rand
	Log  func(format string, args ...any)
}

// Lasts draws the fault's time.
func (f Fault) Lasts(luck *rand.Rand) time.Duration {
	return f.For[0] + time.Duration(luck.Int64N(int64(f.For[1]-f.For[0])+1))
}

// All returns the table.
func All() []Fault {
	var all []Fault
	for _, rows := range [][]Fault{processFaults(), networkFaults(), diskFaults(), damageFaults()} {
		all = append(all, rows...)
	}
	return all
}

// leader returns the leader, or any node if none is known.
func (s *Scene) leader(ctx context.Context) *site.Node {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	leader := s.any()
	_ = site.Until(ctx, "there is a leader", func() error {
		found, err := s.Leader(ctx)
		if err == nil {
			leader = found
		}
		return err
	})
	return leader
}

// follower returns one that is not the leader.
func (s *Scene) follower(ctx context.Context) *site.Node {
	others := s.others(s.leader(ctx))
	if len(others) == 0 {
		return s.Nodes[0]
	}
	return others[s.Luck.IntN(len(others))]
}

func (s *Scene) any() *site.Node { return s.Nodes[s.Luck.IntN(len(s.Nodes))] }

func (s *Scene) others(node *site.Node) (others []*site.Node) {
	for _, other := range s.Nodes {
		if other != node {
			others = append(others, other)
		}
	}
	return others
}

// majority returns the leader and as many others as make a majority.
func (s *Scene) majority(ctx context.Context) []*site.Node {
	leader := s.leader(ctx)
	others := s.others(leader)
	s.Luck.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append([]*site.Node{leader}, others[:len(s.Nodes)/2]...)
}

func (s *Scene) everyone(context.Context) []*site.Node { return s.Nodes }

// one makes a choice of several nodes of one of a single node.
func one(choose func(*Scene, context.Context) *site.Node) func(*Scene, context.Context) []*site.Node {
	return func(s *Scene, ctx context.Context) []*site.Node { return []*site.Node{choose(s, ctx)} }
}

// seconds are the bounds of a fault's time.
func seconds(least, most float64) [2]time.Duration {
	return [2]time.Duration{time.Duration(least * float64(time.Second)), time.Duration(most * float64(time.Second))}
}
