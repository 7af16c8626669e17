package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A phase is one thing to measure.
type phase struct {
	name  string // for --only
	title string // for people
	goal  float64
	unit  string // of the goal, and of what is compared
	cold  bool   // wants servers that have served nothing yet
	once  bool   // also with --rounds
	floor bool   // the floor does it, too
	run   func(*bench, context.Context, phase, *target) (result, error)
}

const (
	cpuUnit    = "CPU ms/op"
	memoryUnit = "MiB"
	timeUnit   = "s"
)

// phases are in the order in which they run: a pod must be there before it is read.
func phases() []phase {
	return []phase{
		{"start", "ready after start, three", 1, timeUnit, true, true, false, startMany},
		{"start-one", "ready after start, one", 0.3, timeUnit, true, true, false, startOne},
		{"idle", "resident idle", 150, memoryUnit, true, true, false, idle},
		{"create", "create pod", 0.45, cpuUnit, false, false, false, create},
		{"get", "get pod", 0.08, cpuUnit, false, false, true, get("")},
		{"get-rv0", "get pod, resourceVersion=0", 0.06, cpuUnit, false, false, true, get("?resourceVersion=0")},
		{"list-json", "list all pods, JSON", 25, cpuUnit, false, false, true, list(jsonMedia)},
		{"list", "list all pods, protobuf", 15, cpuUnit, false, false, true, list(protobufMedia)},
		{"pages", "list all pods in pages of 500", 20, cpuUnit, false, false, false, pages},
		{"status", "status patch (strategic merge)", 0.60, cpuUnit, false, false, false, patchStatus},
		{"lease", "lease renew (update)", 0.25, cpuUnit, false, false, false, renew},
		{"apply", "server-side apply", 0.50, cpuUnit, false, false, false, apply},
		{"watch", "watch ×100, delivery of an event", 0.010, cpuUnit, false, false, true, watchPaced},
		{"watch-burst", "watch ×100, as fast as it goes", 0.010, cpuUnit, false, false, true, watchBurst},
		{"delete", "delete", 0.50, cpuUnit, false, false, false, remove},
		{"resident", "resident after the run", 250, memoryUnit, false, false, false, residentAfter},
		{"kill", "next write after kill -9 of the leader", 2, timeUnit, false, true, false, killLeader},
	}
}

func names() (all []string) {
	for _, p := range phases() {
		all = append(all, p.name)
	}
	return all
}

// choose returns the phases of these names, or all if there is none.
func choose(only []string) (chosen []phase, err error) {
	for _, name := range only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no phase %q, only %s", name, strings.Join(names(), ", "))
		}
	}
	for _, p := range phases() {
		if len(only) == 0 || slices.Contains(only, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}
