package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"kontiki/cluster"
	"kontiki/scripts/chaos/site"
)

// verdictTimeout is how long a damaged node has to say what is wrong with it.
const verdictTimeout = 15 * time.Second

// removeTimeout is for gossip to notice that a node is gone, and for the removal.
const removeTimeout = 30 * time.Second

// errHarmless ends a wait: the node works in spite of the damage, which the checks of the
// run then look at.
var errHarmless = errors.New("the node works")

func damageFaults() []Fault {
	log, snapshot := (*site.Node).RaftLog, (*site.Node).Snapshot
	return []Fault{
		{Name: "log-bit-flipped", Covers: "F20", Alone: true, For: seconds(1, 2), Inject: damage(log, flip)},
		{Name: "log-torn", Covers: "F20", Alone: true, For: seconds(1, 2), Inject: damage(log, tear)},
		{Name: "snapshot-bit-flipped", Covers: "F20", Alone: true, For: seconds(1, 2), Inject: damage(snapshot, flip)},
		{Name: "snapshot-torn", Covers: "F20", Alone: true, For: seconds(1, 2), Inject: damage(snapshot, tear)},
		{Name: "old-disk", Covers: "F19, F20", Alone: true, For: seconds(3, 6), Inject: oldDisk},
		{Name: "wiped-under-old-name", Covers: "F24", Alone: true, For: seconds(0, 0), Inject: wiped},
	}
}

func flip(s *Scene, path string) error { return site.Flip(path, s.Luck.Float64(), s.Luck.IntN(8)) }
func tear(s *Scene, path string) error { return site.Tear(path, 0.3+0.65*s.Luck.Float64()) }

// damage breaks a file of a stopped follower. It may then refuse to start, with an error
// that says so, or work; but it must not serve what is wrong, which the checks find, nor
// end in a way that does not say why.
func damage(which func(*site.Node) string, how func(*Scene, string) error) inject {
	return func(ctx context.Context, s *Scene) (func() error, error) {
		node := s.follower(ctx)
		path := which(node)
		if path == "" {
			return nil, fmt.Errorf("%s has no such file yet", node.Name)
		}
		if err := errors.Join(stop(node), node.SaveDisk(), how(s, path)); err != nil {
			return nil, err
		}
		_, offset := node.LogSince(0)
		if err := node.Start(); err != nil {
			return nil, err
		}
		err := s.refusal(ctx, node, offset, cluster.ErrCorrupt.Error())
		if errors.Is(err, errHarmless) {
			s.Log("%s works in spite of it", node.Name)
			return func() error { return nil }, nil
		}
		if err != nil {
			return nil, err
		}
		s.Log("%s refuses to start with it", node.Name)
		return func() error { return s.repair(ctx, node) }, nil
	}
}

// repair heals a node that refused its disk: as the error says, by removing it and letting it
// join anew, or by the disk that was saved before, as it has missed nothing it had promised.
func (s *Scene) repair(ctx context.Context, node *site.Node) error {
	node.Kill()
	if s.Luck.IntN(2) == 0 {
		s.Log("it got its disk back")
		return errors.Join(node.RestoreDisk(), node.Start())
	}
	s.Log("it was removed and joined anew")
	return errors.Join(os.RemoveAll(node.Data()), s.remove(ctx, node), node.Start())
}

// remove takes a node that is down out of the cluster. It is refused until gossip has noticed.
func (s *Scene) remove(ctx context.Context, node *site.Node) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	others := s.others(node)
	return site.Until(ctx, node.Name+" is removed", func() error {
		return s.Do(ctx, others[s.Luck.IntN(len(others))], http.MethodDelete, "/kontiki/v1/members/"+node.Name, nil, nil)
	})
}

// refusal waits until a node has ended with one of the words in its error, or is ready.
func (s *Scene) refusal(ctx context.Context, node *site.Node, offset int64, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	var verdict error
	err := site.Until(ctx, node.Name+" refuses to start and says why, or is ready", func() error {
		if s.Get(ctx, node, "/readyz", nil) == nil {
			verdict = errHarmless
			return nil
		}
		said, _ := node.LogSince(offset)
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "unexpected fault") {
				verdict = fmt.Errorf("%s panics: %s", node.Name, strings.TrimSpace(line))
				return nil
			}
			for _, word := range words {
				if strings.HasPrefix(line, "error:") && strings.Contains(line, word) {
					return nil
				}
			}
		}
		return errors.New("neither yet")
	})
	return errors.Join(err, verdict)
}

// oldDisk sets one follower's disk back, as a restore of a VM's image does.
func oldDisk(ctx context.Context, s *Scene) (func() error, error) {
	node := s.follower(ctx)
	if err := errors.Join(stop(node), node.SaveDisk(), node.Start()); err != nil {
		return nil, err
	}
	if err := s.writeMany(ctx, s.others(node), 50); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(stop(node), node.RestoreDisk(), node.Start()) }, nil
}

// wiped brings a node back under its name without its disk, which must be refused: it might
// vote again where it has voted.
func wiped(ctx context.Context, s *Scene) (func() error, error) {
	node := s.follower(ctx)
	if err := errors.Join(stop(node), node.TakeDisk()); err != nil {
		return nil, err
	}
	_, offset := node.LogSince(0)
	if err := node.Start(); err != nil {
		return nil, err
	}
	err := s.refusal(ctx, node, offset, cluster.ErrWipedVoter.Error())
	if errors.Is(err, errHarmless) {
		return nil, fmt.Errorf("%s came back with an empty disk under its old name and works", node.Name)
	}
	return func() error { return s.repair(ctx, node) }, err
}
