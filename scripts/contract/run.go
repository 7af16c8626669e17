package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	quiet        = 150 * time.Millisecond // streams that say nothing for so long have said it
	patience     = 3 * time.Second        // for a stream that is behind the others
	endPatience  = 8 * time.Second        // for a stream that is to end by itself
	settleQuiet  = 20 * time.Millisecond
	settleWithin = 500 * time.Millisecond
	agreeWithin  = 5 * time.Second  // for steps that may take a moment
	finalWithin  = 15 * time.Second // for a state that is known to come
	askAgain     = 200 * time.Millisecond
)

// A lane is one server going through one sequence.
type lane struct {
	*server
	memory  *memory
	streams []*stream
	past    []pastAnswer // of a server that is a record: what it says from here on
}

// An outcome is what all servers said to one step; answers are by server.
type outcome struct {
	step    step
	asked   []step // as each server got it
	answers []string
	frames  int // of a watch: how many the first server had sent when we went on
}

// run sends a sequence to all servers, step by step, all of them at a time.
func run(ctx context.Context, servers []*server, q sequence, number int) (outcomes []outcome, err error) {
	var lanes []*lane
	for i, s := range servers {
		l := &lane{server: s, memory: newMemory(fmt.Sprintf("ns%d%c", number, 'a'+i))}
		if s.record != nil {
			if l.past, err = s.record.of(q); err != nil {
				return nil, err
			}
		}
		lanes = append(lanes, l)
	}
	defer func() {
		for _, l := range lanes {
			for _, s := range l.streams {
				s.stop()
			}
		}
	}()
	if err := each(lanes, func(_ int, l *lane) error { return l.makeNamespace(ctx) }); err != nil {
		return nil, err
	}
	for i, s := range append(q.steps[:len(q.steps):len(q.steps)], collect()) {
		for _, l := range lanes {
			l.memory.at(i + 1)
		}
		var next []outcome
		if s.close {
			next = closeStreams(ctx, lanes)
		} else if next, err = ask(ctx, lanes, s); err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, next...)
		for _, l := range lanes {
			l.past = l.past[min(len(next), len(l.past)):]
		}
	}
	if slices.ContainsFunc(q.steps, func(s step) bool { return s.eventually && !s.anyVersion() }) {
		return outcomes, nil // controllers write when they like
	}
	return append(outcomes, versionOrders(lanes)), nil
}

func (l *lane) makeNamespace(ctx context.Context) error {
	if l.record != nil {
		return nil
	}
	got, err := l.send(ctx, l.memory.prepare(post("/api/v1/namespaces", `{"metadata":{"name":"$NS"}}`)))
	if err == nil && got.status != http.StatusCreated {
		err = fmt.Errorf("%s: create namespace %s: %d %s", l.name, l.memory.namespace, got.status, got.body)
	}
	return err
}

// ask sends one step to all lanes. If servers may take a moment to agree, it
// asks again until they do.
func ask(ctx context.Context, lanes []*lane, s step) ([]outcome, error) {
	deadline := time.Now().Add(agreeWithin)
	if s.until != "" {
		deadline = time.Now().Add(finalWithin)
	}
	for {
		o := outcome{step: s, asked: make([]step, len(lanes)), answers: make([]string, len(lanes))}
		memories := make([]*memory, len(lanes))
		err := each(lanes, func(i int, l *lane) error {
			memories[i] = l.memory.clone()
			o.asked[i] = memories[i].prepare(s)
			var err error
			o.answers[i], err = l.answer(ctx, o.asked[i], memories[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		if s.watch {
			settle(ctx, lanes)
			o.frames = lanes[0].heard(len(lanes[0].streams) - 1)
		}
		// A stream may be behind, too, but not what it begins with.
		again := s.eventually || !s.watch && o.asked[len(lanes)-1].anyVersion()
		if !again || o.agreed() && strings.Contains(o.answers[0], s.until) || time.Now().After(deadline) {
			for i, l := range lanes {
				l.memory = memories[i]
			}
			return []outcome{o}, nil
		}
		time.Sleep(askAgain)
	}
}

// answer sends one step and returns what came back, normalized. If that is a
// stream, it is the lane's latest.
func (l *lane) answer(ctx context.Context, asked step, m *memory) (string, error) {
	if l.record != nil {
		return l.recall(asked)
	}
	got, err := l.send(ctx, asked)
	if err != nil {
		return "", err
	}
	if got.stream != nil {
		got.stream.toEnd = asked.untilEnd
		l.streams = append(l.streams, got.stream)
	} else if asked.watch {
		l.streams = append(l.streams, ended())
	}
	return m.normal(got), nil
}

// recall is answer for a record. Of its streams only the length is of interest.
func (l *lane) recall(asked step) (string, error) {
	if len(l.past) == 0 {
		return "", errors.New("the record ends early: go run ./scripts/contract --record")
	}
	if asked.watch {
		l.streams = append(l.streams, &stream{stop: func() {}, frames: make([]frame, l.past[0].Frames)})
	}
	return l.record.Texts[l.past[0].Text], nil
}

// heard is how much came on a stream.
func (l *lane) heard(i int) int {
	frames, _, _, _ := l.streams[i].state()
	return len(l.memory.relevant(frames))
}

// ended stands for a stream that a server refused, so that lanes keep step.
func ended() *stream { return &stream{stop: func() {}, ended: true} }

// agreed says whether waiting can't help: all say the same, or mean not to.
func (o outcome) agreed() bool {
	for i, a := range o.answers {
		if a != o.answers[0] && whyMeant(difference{asked: o.asked[i], peer: o.answers[0], kontiki: a}) == nil {
			return false
		}
	}
	return true
}

// closeStreams waits until all lanes' streams have said as much as each other
// and are quiet, and returns what they said, an outcome for every watch.
func closeStreams(ctx context.Context, lanes []*lane) (outcomes []outcome) {
	for i := range lanes[0].streams {
		for _, l := range lanes {
			if l.record != nil && i < len(l.past) {
				l.streams[i].recall(l.past[i].Frames, l.record.Texts[l.past[i].Text])
			}
		}
		awaitQuiet(ctx, lanes, i)
		o := outcome{step: collect(), frames: lanes[0].heard(i)}
		for _, l := range lanes {
			o.asked = append(o.asked, collect())
			o.answers = append(o.answers, l.closeStream(i))
		}
		outcomes = append(outcomes, o)
	}
	for _, l := range lanes {
		l.streams = nil
	}
	return outcomes
}

// closeStream returns what a stream said.
func (l *lane) closeStream(i int) string {
	if l.record != nil && i < len(l.past) {
		return l.record.Texts[l.past[i].Text]
	}
	frames, ended, garbage, _ := l.streams[i].state()
	l.streams[i].stop()
	return fmt.Sprintf("watch %d\n%s", i+1, l.memory.frames(frames, ended, garbage))
}

// settle lets the stream that was just opened send the state it begins with:
// servers may answer before they have looked at it.
func settle(ctx context.Context, lanes []*lane) {
	i := len(lanes[0].streams) - 1
	for deadline := time.Now().Add(settleWithin); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(settleQuiet / 4) {
		said, still := map[int]bool{}, true
		for _, l := range lanes {
			frames, ended, _, last := l.streams[i].state()
			said[len(l.memory.relevant(frames))] = true
			still = still && (ended || time.Since(last) > settleQuiet)
		}
		if len(said) == 1 && still {
			return
		}
	}
}

func awaitQuiet(ctx context.Context, lanes []*lane, i int) {
	deadline := time.Now().Add(patience)
	if lanes[0].streams[i].toEnd {
		deadline = time.Now().Add(endPatience)
	}
	for time.Now().Before(deadline) && ctx.Err() == nil {
		said, still := map[string]bool{}, true
		for _, l := range lanes {
			frames, ended, _, last := l.streams[i].state()
			said[fmt.Sprint(len(l.memory.relevant(frames)), ended)] = true
			still = still && (ended || !l.streams[i].toEnd && time.Since(last) > quiet)
		}
		if len(said) == 1 && still {
			return
		}
		time.Sleep(quiet / 10)
	}
}

// versionOrders compares which version is larger than which.
func versionOrders(lanes []*lane) outcome {
	o := outcome{step: step{method: "(order of the versions)"}}
	for _, l := range lanes {
		o.asked = append(o.asked, o.step)
		if l.record != nil && len(l.past) > 0 {
			o.answers = append(o.answers, l.record.Texts[l.past[0].Text])
			continue
		}
		o.answers = append(o.answers, l.memory.versionOrder())
	}
	return o
}

// each does something on all lanes at a time, and returns the first error.
func each(lanes []*lane, do func(int, *lane) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(lanes))
	for i, l := range lanes {
		all.Go(func() { errs[i] = do(i, l) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
