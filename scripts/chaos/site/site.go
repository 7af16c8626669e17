// Package site is the cluster that chaos happens to: kontiki servers, each on a machine of
// package vm, supervised as systemd would, with hands on their processes, disks, clocks and
// network. It knows how to break a cluster, not what must hold.
package site

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/scripts/vm"
)

// Ports of the servers, the same on every machine.
const (
	APIPort    = 21643
	PeerPort   = 21301
	GossipPort = 21302
)

// diskBytes is a node's disk: small, so that it fills up fast.
const diskBytes = 160 << 20

// startTimeout bounds the founding of a cluster.
const startTimeout = 60 * time.Second

// Config says what cluster to make.
type Config struct {
	Dir      string // for data, logs and sockets
	Binary   string // of kontiki, built with -tags faults
	Nodes    int
	Seed     uint64
	Loopback bool
	Tuning   string // of snapshots, KONTIKI_FAULTS_TUNING; empty: as in production

	OnStart func(node string) // is told before each start of a server; may be nil
}

// Site is a running cluster.
type Site struct {
	Lab    *vm.Lab
	Client *vm.Machine // where clients are
	Nodes  []*Node
	REST   *rest.Config // credentials, and the way from Client's address; Host is to be set

	cfg  Config
	http http.Client
}

// Open founds a cluster and returns when all its nodes are ready.
func Open(ctx context.Context, cfg Config) (*Site, error) {
	lab, err := vm.Open(vm.Config{Dir: filepath.Join(cfg.Dir, "machines"), Seed: cfg.Seed, Loopback: cfg.Loopback})
	if err != nil {
		return nil, err
	}
	s := &Site{Lab: lab, cfg: cfg}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.found(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) found(ctx context.Context) (err error) {
	if s.Client, err = s.Lab.Add("client"); err != nil {
		return err
	}
	for i := range s.cfg.Nodes {
		if err := s.add(fmt.Sprintf("n%d", i+1)); err != nil {
			return err
		}
	}
	for _, node := range s.Nodes {
		if err := node.Start(); err != nil {
			return err
		}
	}
	if err := s.credentials(ctx); err != nil {
		return err
	}
	for _, node := range s.Nodes {
		if err := Until(ctx, node.Name+" is ready", func() error { return s.Get(ctx, node, "/readyz", nil) }); err != nil {
			return fmt.Errorf("%w; see %s", err, node.LogFile)
		}
	}
	return nil
}

func (s *Site) add(name string) error {
	machine, err := s.Lab.Add(name)
	if err != nil {
		return err
	}
	if s.Lab.Network != nil {
		if err := machine.Limit(diskBytes); err != nil {
			return err
		}
	}
	s.Nodes = append(s.Nodes, &Node{
		Name: name, Machine: machine, LogFile: filepath.Join(s.cfg.Dir, name+".log"),
		URL: "https://" + machine.Address(APIPort), site: s, socket: filepath.Join(s.cfg.Dir, name+".sock"),
	})
	return nil
}

// credentials waits for the first node's kubeconfig.
func (s *Site) credentials(ctx context.Context) error {
	file := s.Nodes[0].Machine.Path("data", "admin.kubeconfig")
	err := Until(ctx, "n1 has written "+file, func() (err error) {
		s.REST, err = clientcmd.BuildConfigFromFlags("", file)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; see %s", err, s.Nodes[0].LogFile)
	}
	s.REST.Dial = s.Client.Dial
	var encryption *tls.Config
	if encryption, err = rest.TLSConfigFor(s.REST); err != nil {
		return err
	}
	// One connection a request: those that a partition broke take a while to notice.
	s.http = http.Client{
		Timeout:   3 * time.Second,
		Transport: &http.Transport{TLSClientConfig: encryption, DialContext: s.Client.Dial, DisableKeepAlives: true},
	}
	return nil
}

// Heal makes the network whole.
func (s *Site) Heal() {
	if s.Lab.Network != nil {
		s.Lab.Network.Heal()
	}
}

// Close ends the cluster; logs stay.
func (s *Site) Close() error {
	s.Heal()
	var all sync.WaitGroup
	for _, node := range s.Nodes {
		all.Go(node.Kill)
	}
	all.Wait()
	return s.Lab.Close()
}

// KeepDisks copies the nodes' disks into the site's directory, for whoever looks for the cause.
func (s *Site) KeepDisks() error {
	var errs []error
	for _, node := range s.Nodes {
		errs = append(errs, os.CopyFS(filepath.Join(s.cfg.Dir, node.Name+".data"), os.DirFS(node.Machine.Path("data"))))
	}
	return errors.Join(errs...)
}

// Until tries again until it works or ctx ends; its error says what was waited for, and why
// the last try failed.
func Until(ctx context.Context, what string, try func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s not yet: %s: %w", time.Since(began).Round(time.Millisecond), what, err)
		case <-tick.C:
		}
	}
}
