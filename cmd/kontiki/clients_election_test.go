package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// electionLease is in whole seconds, and so do candidates see another's
	// renewals: a lease can seem a second older than it is. Who holds it must have
	// stopped by then.
	electionLease = 4 * time.Second
	electionRenew = 2 * time.Second
	electionRetry = 250 * time.Millisecond
)

// TestElection has candidates on two nodes stand for leases. The first one leads
// until it gives up, is killed, or its node is killed, which is the raft's
// leader; then the second one does. No two lead at the same time.
func TestElection(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	first, second := c.leader(), c.followers()[0]
	history := watchLeases(c, c.followers()[1])
	type election struct {
		first, second *candidate
		end           func(*election) // of the first one's term
		released      bool
	}
	elections := map[string]*election{
		"gives-up": {released: true, end: func(e *election) { e.first.stop() }},
		"killed":   {end: func(e *election) { e.first.stop() }},
		"cut-off":  {end: func(e *election) { e.first.waitEnd() }}, // it sees for itself
	}
	for name, e := range elections {
		e.first = stand(c, first, name, "first", e.released)
	}
	for name, e := range elections {
		e.first.waitLeads()
		e.second = stand(c, second, name, "second", e.released)
	}
	gaveUp := elections["gives-up"]
	// A renewal in progress would spoil it: client-go does not try twice.
	history.waitNext(t, "gives-up")
	gaveUp.end(gaveUp)
	gaveUp.second.waitLeads()
	c.crash(first)
	for _, e := range elections {
		e.end(e)
		e.second.waitLeads()
	}
	c.start(first)
	c.waitReady()
	for name, e := range elections {
		lease, err := kubernetes.NewForConfigOrDie(c.clientConfig(first)).CoordinationV1().Leases("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "second" {
			t.Errorf("%s: the node that is back says %+v, %v", name, lease.Spec, err)
		}
		e.second.stop()
		if err := disjoint(append(e.first.history(), e.second.history()...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := history.check(name, e.released); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.checkEqual()
}

// candidate is one who wants a lease, and when it had it by its own clock.
type candidate struct {
	t      testing.TB
	name   string
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	terms []term // guarded by mu
}

type term struct{ from, to time.Time }

// stand starts a candidate for a lease, at one node.
func stand(c *testCluster, node int, lease, name string, release bool) *candidate {
	c.t.Helper()
	client := kubernetes.NewForConfigOrDie(c.clientConfig(node))
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", lease, client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	if err != nil {
		c.t.Fatal(err)
	}
	who := &candidate{t: c.t, name: name + " for " + lease, ended: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: lease, ReleaseOnCancel: release,
		LeaseDuration: slow(electionLease), RenewDeadline: slow(electionRenew), RetryPeriod: slow(electionRetry),
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { who.starts() }, OnStoppedLeading: who.ends},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	who.cancel = cancel
	go func() {
		defer close(who.ended)
		elector.Run(ctx)
	}()
	c.t.Cleanup(who.stop)
	return who
}

func (who *candidate) starts() {
	who.mu.Lock()
	defer who.mu.Unlock()
	who.terms = append(who.terms, term{from: time.Now()})
}

// ends is called when a candidate's last term is over, at the latest.
func (who *candidate) ends() {
	who.mu.Lock()
	defer who.mu.Unlock()
	if n := len(who.terms); n > 0 && who.terms[n-1].to.IsZero() {
		who.terms[n-1].to = time.Now()
	}
}

func (who *candidate) history() []term {
	who.mu.Lock()
	defer who.mu.Unlock()
	return slices.Clone(who.terms)
}

// stop ends the candidate. Who gives a lease up does so first, then says so.
func (who *candidate) stop() {
	who.ends()
	who.cancel()
	who.waitEnd()
}

func (who *candidate) waitEnd() {
	who.t.Helper()
	select {
	case <-who.ended:
	case <-time.After(patience):
		who.t.Errorf("%s does not end", who.name)
	}
}

func (who *candidate) waitLeads() {
	who.t.Helper()
	until(who.t, func() error {
		if terms := who.history(); len(terms) == 0 || !terms[len(terms)-1].to.IsZero() {
			return fmt.Errorf("%s does not lead: %+v", who.name, terms)
		}
		return nil
	})
}

func disjoint(terms []term) error {
	slices.SortFunc(terms, func(a, b term) int { return a.from.Compare(b.from) })
	for i, next := range terms {
		if i > 0 && next.from.Before(terms[i-1].to) {
			return fmt.Errorf("two lead at once: %+v", terms)
		}
	}
	return nil
}

// leaseHistory is what a third party sees of all leases.
type leaseHistory struct {
	mu     sync.Mutex
	leases map[string][]coordinationv1.LeaseSpec // guarded by mu; every version
}

func watchLeases(c *testCluster, node int) *leaseHistory {
	c.t.Helper()
	stream, err := kubernetes.NewForConfigOrDie(c.clientConfig(node)).CoordinationV1().Leases("default").Watch(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	h := &leaseHistory{leases: map[string][]coordinationv1.LeaseSpec{}}
	var following sync.WaitGroup
	following.Go(func() {
		for event := range stream.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok && event.Type != watch.Deleted {
				h.mu.Lock()
				h.leases[lease.Name] = append(h.leases[lease.Name], lease.Spec)
				h.mu.Unlock()
			}
		}
	})
	c.t.Cleanup(func() { stream.Stop(); following.Wait() })
	return h
}

func (h *leaseHistory) count(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leases[name])
}

// waitNext waits for a lease to be written.
func (h *leaseHistory) waitNext(t testing.TB, name string) {
	t.Helper()
	before := h.count(name)
	until(t, func() error {
		if h.count(name) == before {
			return fmt.Errorf("lease %s is not renewed", name)
		}
		return nil
	})
}

// check: a holder comes when the one before has run out, or given up.
func (h *leaseHistory) check(name string, released bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var holders []string
	var before coordinationv1.LeaseSpec
	for _, spec := range h.leases[name] {
		holder := *spec.HolderIdentity
		if len(holders) > 0 && holder != holders[len(holders)-1] && holder != "" {
			earliest := before.RenewTime.Truncate(time.Second)
			if *before.HolderIdentity != "" {
				earliest = earliest.Add(slow(electionLease))
			}
			if spec.AcquireTime.Time.Before(earliest) {
				return fmt.Errorf("%s took the lease at %s, it was taken until %s", holder, spec.AcquireTime, earliest)
			}
		}
		if before = spec; len(holders) == 0 || holder != holders[len(holders)-1] {
			holders = append(holders, holder)
		}
	}
	want := []string{"first", "second"}
	if released {
		want = []string{"first", "", "second"}
	}
	if len(holders) < len(want) || !slices.Equal(holders[:len(want)], want) {
		return fmt.Errorf("the holders were %q, want %q", holders, want)
	}
	return nil
}
