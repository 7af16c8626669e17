package storage

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/apis/example"
)

// TestAnswers: a result is replaced by what a store shares only if it is what that store filled, and
// one that may have been made of an empty object is told.
func TestAnswers(t *testing.T) {
	out, other, shared, made := &example.Pod{}, &example.Pod{}, &example.Pod{}, &example.Pod{}
	_, a := WithAnswer(context.Background())
	a.set(out, shared)
	a.set(other, &example.Pod{})
	if a.Of(out) != shared || a.Of(made) != made {
		t.Error("not what was filled for that result")
	}
	if a.Spoilt(made) {
		t.Error("results are filled unless they are not looked at")
	}
	_, a = WithAnswerOnly(context.Background())
	if a.Spoilt(nil) {
		t.Error("spoilt, though no store has answered")
	}
	a.set(out, shared)
	if a.Spoilt(out) || !a.Spoilt(made) || !a.Spoilt(nil) {
		t.Error("what was made of an empty object is not told from the object")
	}
}
