package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"kontiki/fsm"
	"kontiki/watch"
)

const (
	// freshnessBudget is how long a read waits for a version that this node has
	// not reached. Upstream's watch cache waits as long.
	freshnessBudget = 3 * time.Second
	// freshnessRetrySeconds is what a client is told to wait after that.
	freshnessRetrySeconds = 1
)

func unixNow() int64 { return time.Now().Unix() }

// latest returns a view that has every write acknowledged before the call.
func (s *Store) latest(ctx context.Context) (*fsm.View, error) {
	index, err := s.Proposer.ReadIndex(ctx)
	if err != nil {
		return nil, readError(err)
	}
	if err := s.State.WaitIndex(ctx, index); err != nil {
		return nil, readError(err)
	}
	return s.State.View(), nil
}

// notOlderThan returns a view at or after index, waiting for it a little.
func (s *Store) notOlderThan(ctx context.Context, index uint64) (*fsm.View, error) {
	if view := s.State.View(); view.Index() >= index {
		return view, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, freshnessBudget)
	defer cancel()
	if err := s.State.WaitIndex(waitCtx, index); err != nil {
		if waitCtx.Err() == nil {
			return nil, readError(err)
		}
		retry := freshnessRetrySeconds
		if s.Uncached {
			retry = 0
		}
		return nil, storage.NewTooLargeResourceVersionError(index, s.State.View().Index(), retry)
	}
	return s.State.View(), nil
}

// exactly returns the view as it was at index: the present one with what came
// after taken back. It fails with watch.ErrExpired when the feed no longer
// reaches that far.
func (s *Store) exactly(ctx context.Context, index uint64) (*fsm.View, error) {
	view, err := s.notOlderThan(ctx, index)
	if err != nil {
		return nil, err
	}
	events, err := s.Feed.Since(s.topic, index, view.Index())
	if err != nil {
		return nil, err
	}
	return view.Rewind(index, events), nil
}

// atLeast serves the three ways to say how fresh a read must be: unset is the
// latest, "0" is anything, and a number is that version or a later one.
func (s *Store) atLeast(ctx context.Context, resourceVersion string) (*fsm.View, error) {
	if resourceVersion == "" {
		return s.latest(ctx)
	}
	index, err := s.parseVersion(resourceVersion)
	if err != nil {
		return nil, err
	}
	if index == 0 {
		err = s.begun(ctx)
	}
	if err != nil {
		return nil, err
	}
	view, err := s.notOlderThan(ctx, index)
	if err == nil {
		s.warnOfSilence(ctx, view.Index())
	}
	return view, err
}

// begun waits a little for a node that has just been started: before it has
// caught up for the first time it may have no data at all, or older data than it
// served in its life before.
func (s *Store) begun(ctx context.Context) error {
	if s.hasCaughtUp() && s.State.View().Index() > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, freshnessBudget)
	defer cancel()
	if s.CaughtUp != nil {
		select {
		case <-s.CaughtUp:
		case <-ctx.Done():
			return Unavailable("this node has just been started and has not caught up with the others yet; use another one")
		}
	}
	if s.State.WaitIndex(ctx, 1) != nil {
		return Unavailable("this node has just been started and has no data yet; use another one")
	}
	return nil
}

func (s *Store) hasCaughtUp() bool {
	select {
	case <-s.CaughtUp:
		return true
	default:
		return s.CaughtUp == nil
	}
}

// warnOfSilence has the answer say, in a Warning header, that nobody confirms
// what it shows: the node has no leader. kubectl prints it.
func (s *Store) warnOfSilence(ctx context.Context, index uint64) {
	if s.Silence == nil {
		return
	}
	since, silent := s.Silence()
	if !silent {
		return
	}
	age := "of unknown age"
	if since >= 0 {
		age = since.Round(time.Second/10).String() + " old"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("this node has no leader and may miss newer writes: data as of resourceVersion %d, %s", index, age))
}

// parseVersion is upstream's parser with an error that blames the request;
// upstream answers 500 to a get or watch at "abc".
func (s *Store) parseVersion(resourceVersion string) (uint64, error) {
	index, err := s.versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	return index, nil
}

func isExpired(err error) bool { return errors.Is(err, watch.ErrExpired) }
