package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"kontiki/cluster"
)

// TestFailedNodeEndsAtOnce: a node that cannot go on does not wait until requests are done
// that only it holds up. The others would miss their third vote for so long.
func TestFailedNodeEndsAtOnce(t *testing.T) {
	t.Parallel()
	const forever = time.Minute
	c := newCluster(t, 3, testTuning(func(tuning *cluster.Tuning) { tuning.RetryFor = forever }))
	left := c.followers()[0]
	c.leaveAlone(left)
	client, answered := c.http(left).with("Content-Type", "application/json"), make(chan answer, 1)
	go func() {
		a, err := client.try(http.MethodPost, "/api/v1/nodes", nodeBody("late"))
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	until(t, func() error {
		if !bytes.Contains(client.get("/metrics").body, []byte("apiserver_current_inflight_requests{request_kind=\"mutating\"} 1")) {
			return errors.New("the request has not arrived")
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	began := time.Now()
	err := c.nodes[left].Fail(ctx)
	if took := time.Since(began); err != nil || took > slow(5*time.Second) {
		t.Errorf("it ends after %s, with %v", took, err)
	}
	c.nodes[left].Server = nil
	if a := <-answered; a.code != http.StatusServiceUnavailable {
		t.Errorf("what it was asked: %d %s, want 503", a.code, a.body)
	}
}
