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
	only   bool // see WithAnswerOnly
	shared []answered
}

// answered is what a store answered one call with: what it filled for its caller, and what it
// shares.
type answered struct{ out, shared runtime.Object }

type answerKey struct{}

// WithAnswer returns a context for calls whose result is sent to a client as it
// is: the caller must not change it. For a list, only Of has its items.
func WithAnswer(ctx context.Context) (context.Context, *Answer) {
	a := new(Answer)
	return context.WithValue(ctx, answerKey{}, a), a
}

// WithAnswerOnly is WithAnswer for a get whose result is not looked at: what the store would
// fill for its caller stays empty where that spares the decoding.
func WithAnswerOnly(ctx context.Context) (context.Context, *Answer) {
	ctx, a := WithAnswer(ctx)
	a.only = true
	return ctx, a
}

func answerIn(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// Of returns the shared object if result is what a store filled, and result if
// the registry made it of something else.
func (a *Answer) Of(result runtime.Object) runtime.Object {
	for _, one := range a.shared {
		if one.out == result {
			return one.shared
		}
	}
	return result
}

// Spoilt says whether a registry made its result of an object that may have been left empty.
func (a *Answer) Spoilt(result runtime.Object) bool {
	return a.only && len(a.shared) > 0 && a.Of(result) == result
}

func (a *Answer) set(out, shared runtime.Object) {
	a.shared = append(a.shared, answered{out, shared})
}
