package faults

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"kontiki/cluster"
	"kontiki/scripts/chaos/site"
)

func diskFaults() []Fault {
	store, renamed := cluster.OpLogStore, cluster.OpSnapshotClose+cluster.OpDone
	rows := []Fault{
		{Name: "slow-fsync-leader", Covers: "F15", For: seconds(4, 10), Inject: disk((*Scene).leader, "delay "+store+" 500ms")},
		{Name: "slow-fsync-follower", Covers: "F15", For: seconds(4, 10), Inject: disk((*Scene).follower, "delay "+store+" 2s")},
		{Name: "slow-fsync-all", Covers: "F15", For: seconds(4, 10), Inject: slowEverywhere},
		{Name: "hung-fsync-leader", Covers: "F16", For: seconds(12, 16), Inject: disk((*Scene).leader, "hang "+store)},
		{Name: "hung-fsync-follower", Covers: "F16", For: seconds(12, 16), Inject: disk((*Scene).follower, "hang "+store)},
		{Name: "enospc-log", Covers: "F17", For: seconds(3, 6), Inject: disk((*Scene).leader, "fail "+store+" ENOSPC")},
		{Name: "enospc-snapshot", Covers: "F17", For: seconds(3, 6), Inject: disk((*Scene).any1, "fail "+cluster.OpSnapshotWrite+" ENOSPC")},
		{Name: "disk-full-leader", Covers: "F17", Network: true, For: seconds(4, 8), Inject: diskFull((*Scene).leader)},
		{Name: "disk-full-follower", Covers: "F17", Network: true, For: seconds(4, 8), Inject: diskFull((*Scene).follower)},
		{Name: "eio-leader", Covers: "F18", For: seconds(2, 4), Inject: disk((*Scene).leader, "fail "+store+" EIO 1")},
		{Name: "eio-after-write-leader", Covers: "F18", For: seconds(2, 4), Inject: disk((*Scene).leader, "fail "+store+cluster.OpDone+" EIO 1")},
		{Name: "eio-follower", Covers: "F18", For: seconds(2, 4), Inject: disk((*Scene).follower, "fail "+store+" EIO 1")},
	}
	for _, at := range []struct{ name, op string }{
		{"before-store", store},
		{"after-store", store + cluster.OpDone},
		{"mid-snapshot", cluster.OpSnapshotWrite},
		{"snapshot-renamed", renamed},
		{"mid-truncation", cluster.OpLogDelete + cluster.OpDone},
		{"vote-stored", cluster.OpStableSet + cluster.OpDone},
	} {
		rows = append(rows, Fault{Name: "kill-" + at.name, Covers: "F4", For: seconds(2, 5), Inject: killEvery(at.op)})
	}
	return rows
}

func (s *Scene) any1(context.Context) *site.Node { return s.any() }

// disk gives one node's disk a fault; what it makes of the process, the supervisor undoes.
func disk(whom func(*Scene, context.Context) *site.Node, command string) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := whom(s, ctx)
		return func() error { return tell(node, "clear") }, tell(node, command)
	}
}

// slowEverywhere stays below what makes an election.
func slowEverywhere(_ context.Context, s *Scene) (func() error, error) {
	heal := func() error { return each(s.Nodes, func(n *site.Node) error { return tell(n, "clear") }) }
	return heal, each(s.Nodes, func(n *site.Node) error { return tell(n, "delay "+cluster.OpLogStore+" 150ms") })
}

// killEvery kills a node whenever it comes to a point, one life after the other.
func killEvery(op string) inject {
	return func(_ context.Context, s *Scene) (func() error, error) {
		node := s.any()
		nth := fmt.Sprintf("kill %s %d", op, 1+s.Luck.IntN(4))
		node.AtStart(nth)
		return func() error { return tell(node, "clear") }, tell(node, nth)
	}
}

func diskFull(whom func(*Scene, context.Context) *site.Node) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := whom(s, ctx)
		return node.Machine.Empty, node.Machine.Fill()
	}
}

// cutUntilCompacted cuts a follower off until the others' logs begin after its end, so that
// it is sent a snapshot; on request it dies in the middle of that.
func cutUntilCompacted(dies bool) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := s.follower(ctx)
		c := s.cut(node)
		ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
		defer cancel()
		if err := s.compact(ctx, node); err != nil {
			return c.heal, err
		}
		if dies {
			if err := tell(node, "kill "+cluster.OpSnapshotWrite); err != nil {
				return c.heal, err
			}
		}
		return c.heal, nil
	}
}

// compact writes until two more snapshots have been made without a node.
func (s *Scene) compact(ctx context.Context, without *site.Node) error {
	watched := s.others(without)
	before := make([]string, len(watched))
	for i, node := range watched {
		before[i] = node.Snapshot()
	}
	for round := range 2 {
		err := site.Until(ctx, "the others make snapshots", func() error {
			if err := s.writeMany(ctx, watched, 100); err != nil {
				return err
			}
			for i, node := range watched {
				if node.Snapshot() == before[i] {
					return fmt.Errorf("%s has made %d of 2", node.Name, round)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, node := range watched {
			before[i] = node.Snapshot()
		}
	}
	return nil
}

// writeMany writes to one object; it is fine if some writes fail.
func (s *Scene) writeMany(ctx context.Context, nodes []*site.Node, count int) (err error) {
	for i := range count {
		body := map[string]any{"metadata": map[string]any{"labels": map[string]string{"filler": fmt.Sprint(s.Luck.Uint32())}}}
		if writeErr := s.Do(ctx, nodes[i%len(nodes)], http.MethodPatch, "/api/v1/namespaces/default", body, nil); writeErr != nil {
			err = writeErr
		}
	}
	return err
}
