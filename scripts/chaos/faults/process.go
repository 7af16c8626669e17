package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"kontiki/scripts/chaos/site"
)

type inject = func(context.Context, *Scene) (func() error, error)

type choose = func(*Scene, context.Context) []*site.Node

func processFaults() []Fault {
	return []Fault{
		{Name: "kill-leader", Covers: "F1", For: seconds(1, 6), Inject: kill(one((*Scene).leader))},
		{Name: "kill-follower", Covers: "F1", For: seconds(1, 6), Inject: kill(one((*Scene).follower))},
		{Name: "kill-majority", Covers: "F1", For: seconds(1, 6), Inject: kill((*Scene).majority)},
		{Name: "kill-all", Covers: "F1", For: seconds(0, 3), Inject: kill((*Scene).everyone)},
		{Name: "term-leader", Covers: "F2, F30", For: seconds(0.5, 4), Inject: term(one((*Scene).leader))},
		{Name: "term-follower", Covers: "F2", For: seconds(0.5, 4), Inject: term(one((*Scene).follower))},
		{Name: "rolling-restart", Covers: "F2, F28", For: seconds(0, 0), Inject: rollingRestart},
		{Name: "pause-leader", Covers: "F3", Silences: true, For: seconds(0.3, 12), Inject: pause(one((*Scene).leader))},
		{Name: "pause-leader-long", Covers: "F3", Silences: true, For: seconds(25, 30), Inject: pause(one((*Scene).leader))},
		{Name: "pause-follower", Covers: "F3", Silences: true, For: seconds(0.3, 12), Inject: pause(one((*Scene).follower))},
		{Name: "pause-all", Covers: "F3", Silences: true, For: seconds(0.3, 6), Inject: pause((*Scene).everyone)},
		{Name: "crash-loop-leader", Covers: "F5", For: seconds(3, 8), Inject: crashLoop((*Scene).leader)},
		{Name: "crash-loop-follower", Covers: "F5", For: seconds(3, 8), Inject: crashLoop((*Scene).follower)},
		{Name: "clock-ahead", Covers: "F31", For: seconds(4, 8), Inject: clock("1h", (*Scene).any)},
		{Name: "clock-behind", Covers: "F31", For: seconds(4, 8), Inject: clock("-1h", (*Scene).any)},
		{Name: "clock-jumps-leader", Covers: "F31", For: seconds(4, 8), Inject: clockJumps},
	}
}

// each does something to nodes at once and waits.
func each(nodes []*site.Node, do func(*site.Node) error) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { errs[i] = do(node) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func start(nodes []*site.Node) error { return each(nodes, (*site.Node).Start) }

func kill(whom choose) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		nodes := whom(s, ctx)
		_ = each(nodes, func(n *site.Node) error { n.Kill(); return nil })
		return func() error { return start(nodes) }, nil
	}
}

func term(whom choose) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		nodes := whom(s, ctx)
		return func() error { return start(nodes) }, each(nodes, stop)
	}
}

// stop fails if the server does not end by itself in time.
func stop(n *site.Node) error {
	if !n.Stop() {
		return fmt.Errorf("%s did not end within its time after SIGTERM", n.Name)
	}
	return nil
}

// rollingRestart does not wait for more than the start of a node before it stops the next.
func rollingRestart(_ context.Context, s *Scene) (func() error, error) {
	for _, node := range s.Nodes {
		if err := errors.Join(stop(node), node.Start()); err != nil {
			return nil, err
		}
	}
	return func() error { return nil }, nil
}

func pause(whom choose) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		nodes := whom(s, ctx)
		_ = each(nodes, func(n *site.Node) error { n.Process().Pause(); return nil })
		return func() error {
			return each(nodes, func(n *site.Node) error { n.Process().Resume(); return nil })
		}, nil
	}
}

// crashLoop kills a node's process some moments after each start; the supervisor starts it again.
func crashLoop(whom func(*Scene, context.Context) *site.Node) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := whom(s, ctx)
		moments := make([]time.Duration, 64)
		for i := range moments {
			moments[i] = time.Duration(s.Luck.IntN(1000)) * time.Millisecond
		}
		quit, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for _, moment := range moments {
				node.Process().Signal(syscall.SIGKILL)
				select {
				case <-time.After(moment):
				case <-quit:
					return
				}
			}
		}()
		return func() error { close(quit); <-done; return nil }, nil
	}
}

func clock(offset string, whom func(*Scene) *site.Node) inject {
	return func(_ context.Context, s *Scene) (func() error, error) {
		node := whom(s)
		heal := func() error { return tell(node, "clock 0s") }
		node.AtStart("clock " + offset)
		return heal, tell(node, "clock "+offset)
	}
}

func clockJumps(ctx context.Context, s *Scene) (func() error, error) {
	node := s.leader(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			_, _ = node.Fault([]string{"clock 1h", "clock -1h", "clock 0s"}[i%3])
			select {
			case <-time.After(500 * time.Millisecond):
			case <-quit:
				return
			}
		}
	}()
	return func() error { close(quit); <-done; return tell(node, "clock 0s") }, nil
}

// tellTimeout is for a server that is being started again, whose socket is not there yet.
const tellTimeout = 10 * time.Second

// tell sends a faults command to a server. One that is down begins its next life as AtStart
// says, and one that another fault has paused is told before and after that.
func tell(node *site.Node, command string) error {
	if command == "clock 0s" || command == "clear" {
		node.AtStart("")
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	return site.Until(ctx, node.Name+" takes a fault", func() error {
		if _, err := node.Fault(command); err != nil && !node.Process().Ended() {
			return fmt.Errorf("%s: %s: %w", node.Name, command, err)
		}
		return nil
	})
}
