package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// Answer is where a store leaves what it answers a call with, as the objects
// that this node shares and whose encodings it keeps. Who sends the answer to a
// client takes it from there, and so spares the copy, the conversion and the
// encoding of objects that were sent before.
type Answer struct {
	out    runtime.Object // what the store filled for its caller
	shared runtime.Object
}

type answerKey struct{}

// WithAnswer returns a context for a call whose result is sent to a client as it
// is: the caller must not change it. For a list, only Of has its items.
func WithAnswer(ctx context.Context) (context.Context, *Answer) {
	a := new(Answer)
	return context.WithValue(ctx, answerKey{}, a), a
}

func answerIn(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// Of returns the shared object if result is what the store filled, and result if
// the registry made it of something else.
func (a *Answer) Of(result runtime.Object) runtime.Object {
	if a.out != nil && a.out == result {
		return a.shared
	}
	return result
}

func (a *Answer) set(out, shared runtime.Object) { a.out, a.shared = out, shared }
