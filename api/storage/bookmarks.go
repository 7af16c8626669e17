package storage

import (
	"context"
	"time"
)

// bookmarks says when a watch owes its client a bookmark.
type bookmarks struct {
	timer *time.Timer // nil: never
}

func newBookmarks(ctx context.Context, wanted bool) *bookmarks {
	b := &bookmarks{}
	if wanted {
		b.timer = time.NewTimer(bookmarkInterval)
		b.schedule(ctx)
	}
	return b
}

// schedule sets the next one: after the interval, or shortly before the watch
// times out if that is sooner. After the latter there is none.
func (b *bookmarks) schedule(ctx context.Context) {
	next := bookmarkInterval
	if deadline, ok := ctx.Deadline(); ok {
		lead := time.Until(deadline) - bookmarkLead
		if lead <= 0 {
			b.timer.Stop()
			return
		}
		next = min(next, lead)
	}
	b.timer.Reset(next)
}

func (b *bookmarks) due() <-chan time.Time {
	if b.timer == nil {
		return nil
	}
	return b.timer.C
}

func (b *bookmarks) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
