package faults

import (
	"context"
	"errors"
	"time"

	"kontiki/cluster"
	"kontiki/scripts/chaos/site"
	"kontiki/scripts/vm"
)

var (
	drop = vm.Rule{Drop: true}

	// The gossip uses its port with UDP and TCP. What is not gossip is raft, forwarding and clients.
	noGossip   = vm.Rule{Port: site.GossipPort, Drop: true}
	onlyGossip = []vm.Rule{{Port: site.GossipPort}, drop}
	noUDP      = vm.Rule{Protocol: vm.UDP, Drop: true}
	noTCP      = vm.Rule{Protocol: vm.TCP, Drop: true}
	noAnswer   = vm.Rule{Protocol: vm.TCP, Port: site.APIPort, Reset: true}
)

func networkFaults() []Fault {
	rows := []Fault{
		{Name: "isolate-leader", Covers: "F6", For: seconds(2, 10), Inject: isolate((*Scene).leader, true)},
		{Name: "isolate-follower", Covers: "F6", For: seconds(2, 10), Inject: isolate((*Scene).follower, true)},
		{Name: "leader-for-clients-only", Covers: "F7", For: seconds(2, 12), Inject: isolate((*Scene).leader, false)},
		{Name: "follower-for-clients-only", Covers: "F7", For: seconds(2, 12), Inject: isolate((*Scene).follower, false)},
		{Name: "hung-leader-for-clients-only", Covers: "F7, F16", For: seconds(5, 8), Inject: hungLeaderForClientsOnly},
		{Name: "leader-deaf", Covers: "F8", For: seconds(2, 10), Inject: oneWay((*Scene).leader, true)},
		{Name: "leader-mute", Covers: "F8", For: seconds(2, 10), Inject: oneWay((*Scene).leader, false)},
		{Name: "follower-deaf", Covers: "F8", For: seconds(2, 10), Inject: oneWay((*Scene).follower, true)},
		{Name: "follower-mute", Covers: "F8", For: seconds(2, 10), Inject: oneWay((*Scene).follower, false)},
		{Name: "bridge", Covers: "F9", For: seconds(3, 12), Inject: bridge},
		{Name: "everyone-alone", Covers: "F6", For: seconds(2, 8), Inject: between(drop)},
		{Name: "delay", Covers: "F10", For: seconds(3, 10), Inject: between(vm.Rule{Delay: 75 * time.Millisecond, Jitter: 50 * time.Millisecond})},
		{Name: "loss-20", Covers: "F10", For: seconds(3, 10), Inject: between(vm.Rule{Loss: 0.2})},
		{Name: "loss-50", Covers: "F10", For: seconds(3, 10), Inject: between(vm.Rule{Loss: 0.5})},
		{Name: "cut-until-compacted", Covers: "F11, F36", Alone: true, For: seconds(0, 0), Inject: cutUntilCompacted(false)},
		{Name: "kill-mid-install", Covers: "F4, F11", Alone: true, For: seconds(2, 3), Inject: cutUntilCompacted(true)},
		{Name: "no-udp", Covers: "F12", For: seconds(5, 12), Inject: between(noUDP)},
		{Name: "no-gossip", Covers: "F12", For: seconds(5, 12), Inject: between(noGossip)},
		{Name: "no-tcp", Covers: "F12", For: seconds(3, 8), Inject: between(noTCP)},
		{Name: "only-gossip", Covers: "F12", For: seconds(3, 8), Inject: between(onlyGossip...)},
		{Name: "answers-cut", Covers: "F13", For: seconds(3, 8), Inject: answersCut},
	}
	for i := range rows {
		rows[i].Network = true
	}
	return rows
}

// cables is what one fault does to the network.
type cables struct{ *vm.Layer }

func (s *Scene) cables() cables { return cables{s.Lab.Network.Layer()} }

func (c cables) heal() error { c.Heal(); return nil }

// both sets rules in both directions.
func (c cables) both(a, b *vm.Machine, rules ...vm.Rule) {
	c.Set(a.Addr, b.Addr, rules...)
	c.Set(b.Addr, a.Addr, rules...)
}

// cut cuts a node off from the others, not from clients.
func (s *Scene) cut(node *site.Node) cables {
	c := s.cables()
	for _, other := range s.others(node) {
		c.both(node.Machine, other.Machine, drop)
	}
	return c
}

func isolate(whom func(*Scene, context.Context) *site.Node, fromClients bool) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := whom(s, ctx)
		c := s.cut(node)
		if fromClients {
			c.both(node.Machine, s.Client, drop)
		}
		return c.heal, nil
	}
}

// hungLeaderForClientsOnly makes a leader that does not hear that it was deposed: with the next
// write its raft waits for the disk, and so for everything else. It goes on serving reads, for
// less long than it takes a hung disk to end it.
func hungLeaderForClientsOnly(ctx context.Context, s *Scene) (func() error, error) {
	node := s.leader(ctx)
	if err := tell(node, "hang "+cluster.OpLogStore); err != nil {
		return nil, err
	}
	c := s.cut(node)
	return func() error { return errors.Join(tell(node, "clear"), c.heal()) }, nil
}

// oneWay makes a node that hears nobody, or that nobody hears. Clients are not concerned.
func oneWay(whom func(*Scene, context.Context) *site.Node, deaf bool) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node, c := whom(s, ctx), s.cables()
		for _, other := range s.others(node) {
			from, to := node.Machine.Addr, other.Machine.Addr
			if deaf {
				from, to = to, from
			}
			c.Set(from, to, drop)
		}
		return c.heal, nil
	}
}

// bridge leaves one node that sees all others, which do not see each other.
func bridge(_ context.Context, s *Scene) (func() error, error) {
	others, c := s.others(s.any()), s.cables()
	for i, a := range others {
		for _, b := range others[i+1:] {
			c.both(a.Machine, b.Machine, drop)
		}
	}
	return c.heal, nil
}

// between sets rules between all nodes.
func between(rules ...vm.Rule) inject {
	return func(_ context.Context, s *Scene) (func() error, error) {
		c := s.cables()
		for i, a := range s.Nodes {
			for _, b := range s.Nodes[i+1:] {
				c.both(a.Machine, b.Machine, rules...)
			}
		}
		return c.heal, nil
	}
}

// answersCut resets, every now and then, connections on which an answer is on its way to a
// client: the request was heard.
func answersCut(_ context.Context, s *Scene) (func() error, error) {
	quit, done := make(chan struct{}), make(chan struct{})
	c := s.cables()
	set := func(rules ...vm.Rule) {
		for _, node := range s.Nodes {
			c.Set(node.Machine.Addr, s.Client.Addr, rules...)
		}
	}
	go func() {
		defer close(done)
		defer set()
		for cut := false; ; cut = !cut {
			pause := 300 * time.Millisecond
			if set(); cut {
				set(noAnswer)
				pause = 20 * time.Millisecond
			}
			select {
			case <-time.After(pause):
			case <-quit:
				return
			}
		}
	}()
	return func() error { close(quit); <-done; return nil }, nil
}
