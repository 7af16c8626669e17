package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// signal wakes everybody who waits, without polling: take C, look at the state, wait on C.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu
}

func (s *signal) C() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// backoff is a growing, jittered pause that a change cuts short.
type backoff struct {
	next, limit time.Duration
}

// wait pauses until changed, the pause's end, or the end of ctx, whose error it returns.
func (b *backoff) wait(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(b.next/2 + rand.N(b.next))
	defer timer.Stop()
	b.next = min(2*b.next, b.limit)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	case <-changed:
	}
	return ctx.Err()
}
