package fields

import (
	"crypto/sha256"
	"sync"
)

// maxRemembered and maxSketch bound what is remembered of a kind's objects. There are as many as
// there are templates and what happens to what is made of them.
const (
	maxRemembered = 512
	maxSketch     = 32 << 10
)

// remembered keeps answers by what was asked. What is asked is long, so its digest stands for it.
type remembered[T any] struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]T // guarded by mu
}

func (r *remembered[T]) get(asked []byte) (T, bool) {
	digest := sha256.Sum256(asked)
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, ok := r.known[digest]
	return answer, ok
}

func (r *remembered[T]) put(asked []byte, answer T) {
	digest := sha256.Sum256(asked)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRemembered { // so rare that to begin anew costs nothing
		r.known = map[[sha256.Size]byte]T{}
	}
	r.known[digest] = answer
}
