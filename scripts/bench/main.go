// Command bench measures Kubernetes API servers: it puts the same load on a Kontiki cluster of three
// processes and on kube-apiserver with three etcd members, phase by phase in turn, and prints operations a
// second, latency, and CPU time of all server processes per operation, which a noisy machine disturbs less.
//
//	go run ./scripts/bench [--pods N] [--workers N] [--only PHASE,...] [--peer=false] [--rounds N] [-o json]
//	go run ./scripts/bench --record FILE     # keeps the numbers, and with what they were measured
//	go run ./scripts/bench --show FILE       # prints the tables of a record
//	go run ./scripts/bench --scale           # how Kontiki's cost grows with the number of objects
//
// README.md beside this file says what each phase does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

type options struct {
	Pods    int  `json:"pods"`
	Workers int  `json:"workers"`
	Rounds  int  `json:"rounds"`
	Gzip    bool `json:"gzip,omitempty"`

	Sizes    []int `json:"sizes,omitempty"`
	Watchers int   `json:"watchers,omitempty"`

	only     []string
	peer     bool
	floor    bool
	output   string
	record   string
	show     string
	binary   string
	binaries string
	scale    bool
	plot     string
	document string
}

func flags(o *options) *pflag.FlagSet {
	f := pflag.NewFlagSet("bench", pflag.ExitOnError)
	f.SortFlags = false
	f.IntVar(&o.Pods, "pods", 5000, "how many pods, of about 3 KB each")
	f.IntVar(&o.Workers, "workers", 32, "requests at a time; each worker has a connection of its own")
	f.IntVar(&o.Rounds, "rounds", 1, "how often to measure each phase; the tables have the medians")
	f.StringSliceVar(&o.only, "only", nil, "measure only these phases: "+strings.Join(names(), ", "))
	f.BoolVar(&o.peer, "peer", true, "measure kube-apiserver on etcd too")
	f.BoolVar(&o.floor, "floor", true, "measure what Go's HTTP/2 takes to send Kontiki's answers, too")
	f.BoolVar(&o.Gzip, "gzip", false, "accept compressed answers")
	f.StringVarP(&o.output, "output", "o", "", "json: print the record instead of tables; markdown: tables for a document")
	f.StringVar(&o.record, "record", "", "write the record to this file")
	f.StringVar(&o.show, "show", "", "measure nothing, print the record in this file")
	f.StringVar(&o.binary, "kontiki", "bin/kontiki", "the program to measure ($KONTIKI_BIN)")
	f.StringVar(&o.binaries, "peer-dir", "bin/peer", "where scripts/peer/build.sh has put the peer")
	f.BoolVar(&o.scale, "scale", false, "measure how Kontiki's cost grows with the number of objects, and with watchers")
	f.IntSliceVar(&o.Sizes, "sizes", []int{1000, 10_000, 50_000, 150_000}, "with --scale: numbers of pods")
	f.IntVar(&o.Watchers, "watchers", 10_000, "with --scale: how many watch one node's pods each")
	f.StringVar(&o.plot, "plot", "", "with --scale, or --show of its record: draw the curves in this SVG file")
	f.StringVar(&o.document, "document", "", "with --show: renew the tables that this Markdown file has from it")
	if path := os.Getenv("KONTIKI_BIN"); path != "" {
		o.binary = path
	}
	return f
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == floorCommand {
		fmt.Fprintln(os.Stderr, "bench:", serveFloor(os.Stdout))
		os.Exit(1)
	}
	var o options
	_ = flags(&o).Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.show != "" {
		r, err := readRecord(o.show)
		if err != nil {
			return err
		}
		if o.document != "" {
			return r.renewFile(o.document, o.show)
		}
		return o.publish(r)
	}
	r := newRecord(o)
	var err error
	if o.scale {
		err = o.grow(ctx, r)
	} else {
		err = o.measure(ctx, r)
	}
	if o.record != "" { // what was measured before it failed is worth keeping
		err = errors.Join(err, r.write(o.record))
	}
	return errors.Join(err, o.publish(r))
}

// publish prints the record, and draws it if asked to.
func (o options) publish(r *record) error {
	if o.plot != "" && len(r.Points) > 0 {
		if err := os.WriteFile(o.plot, []byte(plot(panels(r.Points))), 0o644); err != nil {
			return err
		}
	}
	return r.print(os.Stdout, o.output)
}

func (o options) measure(ctx context.Context, r *record) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, record: r}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	for round := range o.Rounds {
		b.round = round + 1
		for _, p := range chosen {
			if p.once && round > 0 {
				continue
			}
			for _, t := range b.targets {
				if t.group.Name == floorName && !p.floor {
					continue
				}
				if err := b.measure(ctx, p, t); err != nil {
					return fmt.Errorf("%s: %s: %w", t.group.Name, p.name, err)
				}
			}
		}
	}
	return nil
}

func (r *record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(text, '\n'), 0o644))
}

func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is not a record: %w", path, err)
	}
	return r, nil
}
