// Command contract holds Kontiki against the real thing: it starts kube-apiserver on etcd and a Kontiki
// cluster, sends both the same requests, to Kontiki through a leader and through a follower, and compares
// what comes back. What differs by nature, such as uids, times and versions, is replaced by placeholders
// first (normalize.go). Differences that are meant are listed in meant.go; any other fails the run.
//
// The requests are a corpus, the rows of the API's contract (corpus*.go), and sequences generated from a
// seed (generate.go).
//
//	scripts/peer/build.sh    # kube-apiserver and etcd
//	go run ./scripts/contract [--seed N] [--requests N] [--only NAME] [--keep]
//	go run ./scripts/contract --record    # also keeps what the peer says to the corpus, for go test
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"kontiki/scripts/servers"
)

type options struct {
	seed     int64
	requests int
	only     string
	keep     bool
	workers  int
	root     string
	binaries string
	report   string
	record   bool
}

func main() {
	var o options
	flag.Int64Var(&o.seed, "seed", 1, "what generated requests come from")
	flag.IntVar(&o.requests, "requests", 10000, "how many requests to generate, beside the corpus")
	flag.StringVar(&o.only, "only", "", "run only sequences whose name has this in it")
	flag.BoolVar(&o.keep, "keep", false, "leave the servers running at the end, and their data")
	flag.IntVar(&o.workers, "workers", 4, "sequences at a time")
	flag.StringVar(&o.root, "root", ".", "the checkout")
	flag.StringVar(&o.binaries, "peer", "bin/peer", "where the peer's programs are")
	flag.StringVar(&o.report, "report", "", "write the report to this file too")
	flag.BoolVar(&o.record, "record", false, "run the whole corpus and nothing else, and write the peer's answers to "+recordFile)
	flag.Parse()
	if o.record {
		o.requests, o.only = 0, ""
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := o.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run starts all servers, compares, reports; ok is false if there is a
// difference that is not meant.
func (o options) run(ctx context.Context) (ok bool, err error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "contract-")
	if err != nil {
		return false, err
	}
	peer, k, servers, err := o.start(ctx, root, dir)
	if o.keep {
		fmt.Fprintf(os.Stderr, "left running: everything in %s; stop it with kill -KILL %s and scripts/cluster.sh down --dir %s\n",
			dir, pids(peer), filepath.Join(dir, "kontiki"))
	} else {
		defer os.RemoveAll(dir)
		if peer != nil {
			defer peer.Stop()
		}
		if k != nil {
			defer k.stop()
		}
	}
	if err != nil {
		return false, err
	}
	all := o.sequences()
	r := compareAll(ctx, servers, all, o.workers)
	if leads, err := k.leader.leader(ctx); err == nil && leads != k.leads {
		fmt.Fprintf(os.Stderr, "note: %s led at the start and %s does now, so not all requests went through a leader\n", k.leads, leads)
	}
	r.write(os.Stdout)
	if o.report != "" {
		file, err := os.Create(o.report)
		if err != nil {
			return false, err
		}
		r.write(file)
		if err := file.Close(); err != nil {
			return false, err
		}
	}
	if err := cmp.Or(r.failure, ctx.Err()); err != nil {
		return false, err
	}
	if o.record {
		err = writeRecord(ctx, servers[0], all, r, filepath.Join(root, recordFile))
	}
	return r.unmeant() == 0, err
}

// writeRecord keeps what the peer said, and prints where it once said something else.
func writeRecord(ctx context.Context, peer *server, all []sequence, r *report, path string) error {
	release, err := peer.release(ctx)
	if err != nil {
		return err
	}
	next := newRecord(release, all, r.outcomes)
	if last, err := loadRecord(path); err == nil {
		changes := report{differences: next.changes(last)}
		fmt.Printf("\n%d recorded answers change (- before, + now)\n", len(changes.differences))
		changes.writeGroups(os.Stdout)
	}
	fmt.Printf("recorded %d answers of %s, %d texts, in %s\n", next.answers(), release, len(next.Texts), path)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), next.save(path))
}

// start returns what it has started in any case.
func (o options) start(ctx context.Context, root, dir string) (*servers.Group, *kontiki, []*server, error) {
	binaries := o.binaries
	if !filepath.IsAbs(binaries) {
		binaries = filepath.Join(root, binaries)
	}
	homes := map[string]string{"peer": filepath.Join(dir, "peer"), "kontiki": filepath.Join(dir, "kontiki")}
	for _, home := range homes {
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, nil, nil, err
		}
	}
	fmt.Fprintln(os.Stderr, "starting etcd and kube-apiserver")
	peer, reference, err := startPeer(ctx, binaries, homes["peer"])
	if err != nil {
		return peer, nil, nil, err
	}
	k, err := startKontiki(ctx, root, homes["kontiki"])
	if err != nil {
		return peer, k, nil, err
	}
	return peer, k, []*server{reference, k.leader, k.follower}, nil
}

// sequences are those of the corpus, and generated ones until there are enough requests.
func (o options) sequences() (all []sequence) {
	all = corpus()
	for requests, i := 0, 0; requests < o.requests; i++ {
		q := generate(o.seed, i)
		all = append(all, q)
		requests += len(q.steps)
	}
	if o.only == "" {
		return all
	}
	var only []sequence
	for _, q := range all {
		if strings.Contains(q.name, o.only) {
			only = append(only, q)
		}
	}
	return only
}

// compareAll runs sequences, some at a time.
func compareAll(ctx context.Context, servers []*server, all []sequence, workers int) *report {
	var (
		r       = report{answers: map[string]int{}, outcomes: make([][]outcome, len(all))}
		mu      sync.Mutex
		running sync.WaitGroup
		told    = time.Now()
		queue   = make(chan int)
	)
	for range workers {
		running.Go(func() {
			for i := range queue {
				outcomes, err := run(ctx, servers, all[i], i)
				found := compare(servers, all[i], outcomes)
				mu.Lock()
				r.outcomes[i] = outcomes
				r.add(all[i], outcomes, found)
				if err != nil && r.failure == nil {
					r.failure = fmt.Errorf("%q: %w", all[i].name, err)
				}
				if time.Since(told) > 2*time.Second {
					told = time.Now()
					fmt.Fprintf(os.Stderr, "%d of %d sequences, %d requests, %d differences, %d not meant\n",
						r.sequences, len(all), r.requests, len(r.differences), r.unmeant())
				}
				mu.Unlock()
			}
		})
	}
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		queue <- i
	}
	close(queue)
	running.Wait()
	return &r
}
