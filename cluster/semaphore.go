package cluster

import (
	"container/list"
	"context"
	"sync"
)

// semaphore bounds the bytes of commands in flight. First come, first served, so that a
// large command is not overtaken for ever by small ones.
type semaphore struct {
	mu      sync.Mutex
	free    int       // guarded by mu
	waiting list.List // guarded by mu; of *claim
}

type claim struct {
	bytes   int
	granted chan struct{}
}

func newSemaphore(bytes int) *semaphore { return &semaphore{free: bytes} }

func (s *semaphore) acquire(ctx context.Context, bytes int) error {
	s.mu.Lock()
	if s.waiting.Len() == 0 && s.free >= bytes {
		s.free -= bytes
		s.mu.Unlock()
		return nil
	}
	c := &claim{bytes: bytes, granted: make(chan struct{})}
	element := s.waiting.PushBack(c)
	s.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
		s.withdraw(element, c)
		return ctx.Err()
	}
}

// withdraw takes back a claim, also one that was granted in the same moment.
func (s *semaphore) withdraw(element *list.Element, c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.granted:
		s.free += c.bytes
	default:
		s.waiting.Remove(element)
	}
	s.grantLocked()
}

func (s *semaphore) release(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += bytes
	s.grantLocked()
}

func (s *semaphore) grantLocked() {
	for front := s.waiting.Front(); front != nil; front = s.waiting.Front() {
		c := front.Value.(*claim)
		if s.free < c.bytes {
			return
		}
		s.free -= c.bytes
		s.waiting.Remove(front)
		close(c.granted)
	}
}
