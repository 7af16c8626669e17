package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"kontiki/scripts/chaos/faults"
	"kontiki/scripts/chaos/site"
)

// roundTimeout bounds a round, whatever hangs in it.
const roundTimeout = 10 * time.Minute

// settleTime is how long a healthy cluster works between two acts.
const settleTime = time.Second

// round is one cluster, a few acts, and the check of all that clients saw.
type round struct {
	options
	seed uint64
	hand []act
	out  io.Writer

	dir      string
	luck     *rand.Rand
	site     *site.Site
	evidence *evidence
	baseline site.Usage
}

// run reports whether nothing was found. It says so itself.
func (r *round) run(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	r.luck = rand.New(rand.NewPCG(r.seed, 2))
	err := r.open(ctx)
	if err == nil {
		err = r.acts(ctx)
		err = errors.Join(err, r.check(ctx))
	}
	return r.close(err)
}

func (r *round) open(ctx context.Context) (err error) {
	// Short, because sockets are in it, whose names have at most 107 bytes.
	if r.dir, err = os.MkdirTemp(r.options.dir, "chaos-"); err != nil {
		return err
	}
	if r.evidence, err = newEvidence(r.dir, r.seed); err != nil {
		return err
	}
	r.site, err = site.Open(ctx, site.Config{
		Dir: r.dir, Binary: r.binary, Nodes: r.nodes, Seed: r.seed, Loopback: r.loopback, Tuning: r.tuning,
		OnStart: r.evidence.started,
	})
	if err != nil {
		return err
	}
	if why := r.site.Lab.Shared; why != nil && !r.loopback {
		fmt.Fprintf(r.out, "  no faults of network and disk size: %v\n", why)
	}
	if r.baseline, err = calm(ctx, r.site, r.dir, r.seed); err != nil {
		return err
	}
	return r.evidence.begin(ctx, r.site)
}

func (r *round) acts(ctx context.Context) error {
	for _, a := range r.hand {
		if r.site.Lab.Shared != nil && a.network() {
			fmt.Fprintf(r.out, "  skip  %-36s needs a network of its own\n", a)
			continue
		}
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
		began := time.Now()
		result, err := r.act(ctx, a)
		if err != nil {
			fmt.Fprintf(r.out, "  FAIL  %-36s %s\n", a, err)
			return fmt.Errorf("%s: %w", a, err)
		}
		fmt.Fprintf(r.out, "  ok    %-36s %5.1fs, %s\n", a, time.Since(began).Seconds(), result)
	}
	return nil
}

// inOrder has the faults that silence processes last: others have to talk to them first. What
// is injected last is healed first.
func (a act) inOrder() act {
	return slices.SortedStableFunc(slices.Values(a), func(x, y faults.Fault) int {
		switch {
		case x.Silences == y.Silences:
			return 0
		case x.Silences:
			return 1
		}
		return -1
	})
}

func (a act) network() bool {
	for _, fault := range a {
		if fault.Network {
			return true
		}
	}
	return false
}

// act injects, waits, heals, and watches the cluster recover.
func (r *round) act(ctx context.Context, a act) (result string, err error) {
	var remarks []string
	scene := &faults.Scene{Site: r.site, Luck: r.luck, Log: func(format string, args ...any) {
		remarks = append(remarks, fmt.Sprintf(format, args...))
	}}
	var heals []func() error
	var lasts time.Duration
	restarts := r.restarts()
	for _, fault := range a.inOrder() {
		lasts = max(lasts, fault.Lasts(r.luck))
		r.evidence.note("begin " + fault.Name)
		heal, injectErr := fault.Inject(ctx, scene)
		if heal != nil {
			heals = append(heals, heal)
		}
		err = errors.Join(err, injectErr)
	}
	if err == nil {
		err = pause(ctx, lasts)
	}
	for _, heal := range slices.Backward(heals) {
		err = errors.Join(err, heal())
	}
	r.evidence.note("healed " + a.String())
	if err != nil {
		return "", err
	}
	recovery, err := recovered(ctx, r.site)
	if n := r.restarts() - restarts; n > 0 {
		remarks = append(remarks, fmt.Sprintf("%d restarts", n))
	}
	return strings.Join(append([]string{recovery}, remarks...), ", "), err
}

func (r *round) restarts() (total int) {
	for _, node := range r.site.Nodes {
		total += node.Restarts()
	}
	return total
}

// check ends the load and looks at what it saw, and at what the servers have left lying about.
func (r *round) check(ctx context.Context) error {
	found, err := r.evidence.finish(ctx)
	for _, finding := range found { // one a line, after what was done
		err = errors.Join(err, errors.New(finding))
	}
	now, tidyErr := tidy(ctx, r.site, r.baseline)
	fmt.Fprintf(r.out, "  most of a server before and after: %s, %s\n", r.baseline, now)
	return errors.Join(err, tidyErr, restored(ctx, r.site, r.luck))
}

// close prints the verdict. The directory of a round that failed stays.
func (r *round) close(err error) bool {
	if r.site != nil {
		if err != nil {
			err = errors.Join(err, r.site.KeepDisks())
		}
		err = errors.Join(err, r.site.Close())
	}
	var names []string
	for _, a := range r.hand {
		names = append(names, a.String())
	}
	if err != nil {
		fmt.Fprintf(r.out, "FAILED  seed %d: %v\n        history, logs and disks: %s\n        again: scripts/chaos.sh --seed %d --nodes %d --snapshots '%s' --faults %s\n",
			r.seed, err, r.dir, r.seed, r.nodes, r.tuning, strings.Join(names, ","))
		return false
	}
	fmt.Fprintf(r.out, "passed  seed %d\n", r.seed)
	if err := os.RemoveAll(r.dir); err != nil {
		fmt.Fprintf(r.out, "        cannot remove %s: %v\n", r.dir, err)
	}
	return true
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
