// Command chaos runs a cluster of real server processes, breaks it in the ways of a table
// (package faults), heals it, and checks what clients saw meanwhile. README.md is the ledger
// of what it covers and has found.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"kontiki/scripts/chaos/faults"
)

// options are what the command line says.
type options struct {
	duration time.Duration
	seed     uint64
	list     []string // of fault names, two joined by a plus
	nodes    int
	dir      string
	binary   string
	tuning   string
	loopback bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := pflag.NewFlagSet("chaos", pflag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 0, "go on for that long, with random pairs after the list (default: the list once)")
	flags.Uint64Var(&o.seed, "seed", 0, "of everything that is random (default: of the clock)")
	flags.StringSliceVar(&o.list, "faults", nil, "names, in this order; a+b is two at once (default: all, in random order)")
	flags.IntVar(&o.nodes, "nodes", 3, "size of the cluster")
	flags.StringVar(&o.dir, "dir", "", "where the directories of failed runs stay (default: the system's for temporary files)")
	flags.StringVar(&o.binary, "binary", "bin/kontiki-faults", "kontiki, built with -tags faults")
	flags.StringVar(&o.tuning, "snapshots", "64,500ms,16", "threshold, interval and trailing logs of raft's snapshots; empty: as in production")
	flags.BoolVar(&o.loopback, "loopback", false, "do not isolate the nodes: no faults of network and disk size")
	list := flags.Bool("list", false, "list the faults")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		for _, fault := range faults.All() {
			fmt.Fprintf(out, "%-26s %s\n", fault.Name, fault.Covers)
		}
		return nil
	}
	if o.nodes < 1 {
		return errors.New("--nodes must be at least 1")
	}
	var err error
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	if o.dir != "" {
		o.dir, err = filepath.Abs(o.dir) // servers have directories of their own
		if err = errors.Join(err, os.MkdirAll(o.dir, 0o755)); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixMilli())
	}
	return chaos(ctx, o, out)
}

// chaos runs rounds until the list is through, and the time is over.
func chaos(ctx context.Context, o options, out io.Writer) error {
	deck, err := newDeck(o)
	if err != nil {
		return err
	}
	began, failed := time.Now(), 0
	fmt.Fprintf(out, "chaos: seed %d, %d nodes\n", o.seed, o.nodes)
	rounds := 0
	for ; ctx.Err() == nil; rounds++ {
		hand := deck.deal(time.Since(began) < o.duration)
		if len(hand) == 0 {
			break
		}
		r := &round{options: o, seed: o.seed + uint64(rounds), hand: hand, out: out}
		if !r.run(ctx) {
			failed++
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted in round %d: %w", rounds, err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rounds failed", failed, rounds)
	}
	fmt.Fprintf(out, "chaos: %d rounds in %s, nothing found\n", rounds, time.Since(began).Round(time.Second))
	return nil
}

// act is one fault, or two at once.
type act []faults.Fault

func (a act) String() string {
	var names []string
	for _, fault := range a {
		names = append(names, fault.Name)
	}
	return strings.Join(names, "+")
}
