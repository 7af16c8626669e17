package duties

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"kontiki/api/storage"
	"kontiki/fsm"
)

const (
	// expiryInterval is how late an entry may be deleted after its time.
	expiryInterval = 5 * time.Second
	// expiryBatch bounds the deletions that are proposed at a time; they share
	// log batches.
	expiryBatch = 64
)

// ExpireEntries deletes entries whose time is over, by commands that name the
// version they mean: one that was written again meanwhile stays. It looks at
// the clock of the leader only.
func ExpireEntries(ctx context.Context, backend storage.Backend, log hclog.Logger) {
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		expireDue(ctx, backend, time.Now().Unix(), log)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// expireDue deletes everything that was due at now, a batch after the other.
func expireDue(ctx context.Context, backend storage.Backend, now int64, log hclog.Logger) {
	for ctx.Err() == nil {
		due := make([]*fsm.Entry, 0, expiryBatch)
		backend.State.View().AscendExpires(now, func(entry *fsm.Entry) bool {
			due = append(due, entry)
			return len(due) < expiryBatch
		})
		if len(due) == 0 {
			return
		}
		if err := deleteAll(ctx, backend.Proposer, due); err != nil {
			log.Warn("cannot delete expired entries, trying again", "entries", len(due), "error", err)
			return
		}
	}
}

func deleteAll(ctx context.Context, proposer storage.Proposer, entries []*fsm.Entry) error {
	results := make(chan error, len(entries))
	for _, entry := range entries {
		go func() {
			_, err := proposer.Propose(ctx, fsm.Command{Op: fsm.OpDelete, Key: entry.Key, Expect: entry.ModIndex})
			results <- err
		}()
	}
	var failure error
	for range entries {
		if err := <-results; err != nil {
			failure = err
		}
	}
	return failure
}
