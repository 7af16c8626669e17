package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/cluster"
)

const (
	retryFor = time.Second // how long a node tries before it gives up
	// answerWithin bounds an answer that is "no": retryFor, and what comes on top
	// when an attempt that just began is let finish.
	answerWithin = 8 * time.Second
)

// TestNoQuorum takes two nodes of three away, first from their leader, then
// from a follower. What is left serves reads that may be old, and refuses the
// others in bounded time and in a way that tells clients to come back.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, testTuning(func(tuning *cluster.Tuning) { tuning.RetryFor = slow(retryFor) }))
	for _, who := range []string{"leader", "follower"} {
		left := c.leader()
		if who == "follower" {
			left = c.followers()[0]
		}
		c.leaveAlone(left)
		refused := c.checkCutOff(left, who)
		for i := range c.nodes {
			if i != left {
				c.start(i)
			}
		}
		c.waitReady()
		for _, name := range refused {
			if a := c.http(left).get("/api/v1/nodes/" + name); a.code != http.StatusNotFound {
				t.Errorf("a write that was refused for want of a leader took effect: %d %s", a.code, a.body)
			}
		}
		if warned := c.http(left).get("/api/v1/namespaces?resourceVersion=0").header.Values("Warning"); len(warned) > 0 {
			t.Errorf("the others are back, and it still warns: %q", warned)
		}
		if a := c.createNode(left, who+"-again"); a.code != http.StatusCreated {
			t.Errorf("a write after the others are back: %d %s", a.code, a.body)
		}
	}
	c.checkEqual()
}

// silence is what a node without a quorum says of what it serves.
var silence = regexp.MustCompile(`^299 - "this node has no leader and may miss newer writes: data as of resourceVersion \d+, [0-9.]+m?s old"$`)

// index is the version that node i is at.
func (c *testCluster) index(i int) string {
	return strconv.FormatUint(c.nodes[i].State.Index(), 10)
}

func (c *testCluster) createNode(i int, name string) answer {
	c.t.Helper()
	return c.http(i).with("Content-Type", "application/json").do(http.MethodPost, "/api/v1/nodes", nodeBody(name))
}

func nodeBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, name)
}

// TestRestartAlone restarts a node while the others are gone. It may have lost
// sight of what it served before, so it must serve nothing until one comes back.
func TestRestartAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	if a := c.createNode(0, "seen"); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	if a := c.http(0).get("/api/v1/nodes/seen?resourceVersion=0"); a.code != http.StatusOK {
		t.Fatalf("before: %d %s", a.code, a.body)
	}
	for i := range c.nodes {
		c.crash(i)
	}
	c.start(0)
	if a := c.http(0).get("/api/v1/nodes/seen?resourceVersion=0"); a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("restarted alone: %d %v %s, want 503 with Retry-After", a.code, a.header, a.body)
	}
	c.start(1)
	until(t, func() error {
		switch a := c.http(0).get("/api/v1/nodes/seen?resourceVersion=0"); a.code {
		case http.StatusOK:
			return nil
		case http.StatusServiceUnavailable:
			return fmt.Errorf("still %s", a.body)
		default:
			t.Fatalf("with a quorum: %d %s", a.code, a.body)
			return nil
		}
	})
}

// checkCutOff asks a node without a quorum for everything at once. It returns
// the nodes whose creation was refused with certainty.
func (c *testCluster) checkCutOff(left int, who string) (refused []string) {
	c.t.Helper()
	client := c.http(left)
	until(c.t, func() error { // raft takes a moment to give its leader up
		if _, silent := c.nodes[left].Node.Silence(); !silent {
			return errors.New("the node still believes in its leader")
		}
		return nil
	})
	var asking sync.WaitGroup
	for path, want := range map[string]int{
		"/api/v1/namespaces/default?resourceVersion=0":                                         http.StatusOK,
		"/api/v1/namespaces?resourceVersion=0":                                                 http.StatusOK,
		"/api/v1/namespaces?resourceVersion=0&watch=true&timeoutSeconds=1":                     http.StatusOK,
		"/api/v1/namespaces?resourceVersion=1":                                                 http.StatusOK,
		"/api/v1/namespaces?resourceVersion=" + c.index(left) + "&watch=true&timeoutSeconds=1": http.StatusOK,
		"/livez":   http.StatusOK,
		"/healthz": http.StatusOK,
		"/version": http.StatusOK,
		"/readyz":  http.StatusInternalServerError,
	} {
		asking.Go(func() {
			a, err := client.try(http.MethodGet, path, nil)
			if err != nil || a.code != want {
				c.t.Errorf("%s, %s: answer %d, want %d: %s, %v", who, path, a.code, want, a.body, err)
			}
			if warned := a.header.Values("Warning"); strings.HasPrefix(path, "/api/") != (len(warned) == 1) {
				c.t.Errorf("%s, %s: warnings %q, want one for data only", who, path, warned)
			} else if len(warned) == 1 && !silence.MatchString(warned[0]) {
				c.t.Errorf("%s, %s: warning %q, want one like %s", who, path, warned[0], silence)
			}
		})
	}
	ask := func(client *rawClient, method, path string, body []byte) *answer {
		a := new(answer)
		asking.Go(func() {
			if err := unavailable(client, method, path, body, a); err != nil {
				c.t.Errorf("%s, %s %s: %v", who, method, path, err)
			}
		})
		return a
	}
	for _, path := range []string{
		"/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/namespaces?limit=1",
		"/api/v1/namespaces?resourceVersion=1000000", "/api/v1/namespaces/none",
	} {
		ask(client, http.MethodGet, path, nil)
	}
	creations := map[string]*answer{}
	for n := range 3 {
		name := fmt.Sprintf("%s-%d", who, n)
		creations[name] = ask(client.with("Content-Type", "application/json"), http.MethodPost, "/api/v1/nodes", nodeBody(name))
	}
	ask(client.with("Content-Type", "application/merge-patch+json"), http.MethodPatch, "/api/v1/namespaces/default", []byte(`{"metadata":{"labels":{"cut":"off"}}}`))
	ask(client, http.MethodDelete, "/api/v1/namespaces/kube-public", nil)
	// Admission asks the storage for a namespace that it does not know.
	ask(client.with("Content-Type", "application/json"), http.MethodPost, "/api/v1/namespaces/none/pods", []byte(pod("lost")))
	asking.Wait()
	for name, a := range creations {
		if a.code == http.StatusServiceUnavailable {
			refused = append(refused, name)
		}
	}
	return refused
}

// unavailable fails unless the answer is 503 or 504, comes in time, and says
// when to try again.
func unavailable(client *rawClient, method, path string, body []byte, a *answer) (err error) {
	began := time.Now()
	if *a, err = client.try(method, path, body); err != nil {
		return err
	}
	if took := time.Since(began); took > slow(answerWithin) {
		return fmt.Errorf("answered after %s", took)
	}
	reasons := map[int]metav1.StatusReason{
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		http.StatusGatewayTimeout:     metav1.StatusReasonTimeout,
	}
	var status metav1.Status
	switch err := fromJSON(a.body, &status); {
	case err != nil || reasons[a.code] == "" || reasons[a.code] != status.Reason:
		return fmt.Errorf("answer %d, want a Status of 503 or 504: %s", a.code, a.body)
	case a.header.Get("Retry-After") == "":
		return fmt.Errorf("answer %d has no Retry-After: %s", a.code, a.body)
	}
	return nil
}
