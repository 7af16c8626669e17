package check

import (
	"context"
	"fmt"
	"time"

	"kontiki/scripts/chaos/history"
	"kontiki/scripts/chaos/load"
)

const collectPause = 100 * time.Millisecond

// Collect reads what every node has in the end. It waits for them to answer and to come to one index; a
// node that does not before ctx ends is an error.
func Collect(ctx context.Context, cfg load.Config, rec *history.Recorder) (final Final, err error) {
	var clients []*load.Client
	for _, e := range cfg.Endpoints {
		client, err := load.Dial(e, cfg.REST)
		if err != nil {
			return final, err
		}
		defer client.Close()
		clients = append(clients, client)
	}
	for _, client := range clients {
		err := retry(ctx, func() error {
			lists, err := load.Latest(ctx, cfg, client, rec)
			if err == nil {
				final.Lists = append(final.Lists, lists...)
			}
			return err
		})
		if err != nil {
			return final, err
		}
	}
	err = retry(ctx, func() error {
		final.Digests, err = digests(ctx, clients, rec)
		return err
	})
	return final, err
}

// digests are those of all nodes at one index.
func digests(ctx context.Context, clients []*load.Client, rec *history.Recorder) (all []history.Digest, err error) {
	for _, client := range clients {
		d, err := load.DigestOf(ctx, client, rec)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	for _, d := range all {
		if d.Index != all[0].Index {
			return nil, fmt.Errorf("%s is at %d, %s at %d", all[0].Node, all[0].Index, d.Node, d.Index)
		}
	}
	return all, nil
}

// retry tries until it works or ctx ends, and then says why it did not.
func retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(collectPause):
		}
	}
}
