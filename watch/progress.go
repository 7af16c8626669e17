package watch

import "sync"

// progress lets goroutines wait for a condition that each published batch may
// fulfil. The publisher pays for a channel only when somebody waits.
type progress struct {
	mu   sync.Mutex
	next chan struct{} // guarded by mu; closed at the next announcement, nil if nobody waits
}

// announce wakes all waiters. Call it after the change they may be waiting for.
func (p *progress) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// wait returns once done() is true.
func (p *progress) wait(done func() bool) {
	for !done() {
		if next := p.join(done); next != nil {
			<-next
		}
	}
}

// join returns the channel of the next announcement, nil if done() is true by
// now: an announcement before the lock was taken has then been seen.
func (p *progress) join(done func() bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done() {
		return nil
	}
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}
