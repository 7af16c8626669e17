package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/api"
	"kontiki/cluster/pki"
)

const (
	// certificateCheck is how often a node looks after its certificates: a small
	// part of the shortest life that one of them has.
	certificateCheck = time.Hour

	// warnBefore is how long before the end of a certificate the log says so, and
	// warnEvery how often. Renewal is long past then: it has failed.
	warnBefore = 30 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
)

// certificates keeps those of a running node good: its own, for the API and for
// peers, and the one in the administrator's kubeconfig. What is on disk is what
// is used, so a renewal by another process is taken up too.
type certificates struct {
	cfg        Config
	root       *pki.Cluster
	identity   *pki.Identity
	kubeconfig string // file
	address    string // of the API
	log        hclog.Logger

	mu     sync.Mutex // held while files change
	warned time.Time  // run's alone
	cancel context.CancelFunc
	done   chan struct{}
}

// identityDir is where a node keeps its own certificate.
func identityDir(dataDir string) string { return filepath.Join(dataDir, "pki") }

// start writes the kubeconfig and looks after everything from then on.
func (c *certificates) start() error {
	if err := c.refresh(); err != nil {
		return err
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	c.done = make(chan struct{})
	ticker := c.cfg.Clock.NewTicker(certificateCheck)
	go func() {
		defer close(c.done)
		defer ticker.Stop()
		for {
			c.warn()
			select {
			case <-ticker.C():
			case <-ctx.Done():
				return
			}
			if err := c.refresh(); err != nil {
				c.log.Error("cannot renew certificates, will try again", "error", err, "in", certificateCheck)
			}
		}
	}()
	return nil
}

func (c *certificates) stop() {
	c.cancel()
	<-c.done
}

// refresh renews what is due and takes up what is new.
func (c *certificates) refresh() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	hosts, err := certificateHosts(c.cfg)
	if err != nil {
		return err
	}
	next, err := pki.NodeIdentity(c.root, identityDir(c.cfg.DataDir), c.cfg.Name, hosts)
	if err == nil {
		err = c.takeUp(next)
	}
	return errors.Join(err, ensureKubeconfig(c.kubeconfig, c.root, c.cfg.Name, c.address))
}

// Renew implements api.Certificates: everything, due or not.
func (c *certificates) Renew() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := pki.RenewNode(c.root, identityDir(c.cfg.DataDir))
	if err == nil {
		err = c.takeUp(next)
	}
	return errors.Join(err, writeKubeconfig(c.kubeconfig, c.root, c.cfg.Name, "https://"+c.address))
}

func (c *certificates) takeUp(next *pki.Identity) error {
	changed, err := c.identity.Replace(next)
	if changed {
		c.log.Info("new connections use a new certificate", "expires", next.NotAfter())
	}
	return err
}

// Status implements api.Certificates.
func (c *certificates) Status() ([]api.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return certificateStatus(c.root, c.identity, c.cfg.PKIDir, c.cfg.DataDir)
}

// certificateStatus lists the certificates of the node with this data directory.
func certificateStatus(root *pki.Cluster, identity *pki.Identity, pkiDir, dataDir string) ([]api.Certificate, error) {
	leaf, renewNode := identity.Certificate().Leaf, pki.RenewAt(identity.Certificate().Leaf)
	list := []api.Certificate{
		{What: "ca", Subject: root.CA.Subject.String(), File: filepath.Join(pkiDir, "ca.crt"), NotBefore: root.CA.NotBefore, NotAfter: root.CA.NotAfter},
		{What: "node", Subject: leaf.Subject.String(), File: filepath.Join(identityDir(dataDir), "node.crt"), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, RenewAt: &renewNode},
	}
	file := filepath.Join(dataDir, adminFile)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return list, err
	}
	admin, err := adminCertificate(config)
	if err != nil {
		return list, err
	}
	renewAdmin := pki.RenewAt(admin)
	return append(list, api.Certificate{
		What: "admin", Subject: admin.Subject.String(), File: file, NotBefore: admin.NotBefore, NotAfter: admin.NotAfter, RenewAt: &renewAdmin,
	}), nil
}

// warn has a line in the log, once a day, for each certificate that ends soon.
func (c *certificates) warn() {
	now := c.cfg.Clock.Now()
	list, err := c.Status()
	if err != nil {
		c.log.Error("cannot read the certificates", "error", err)
	}
	if now.Sub(c.warned) < warnEvery {
		return
	}
	for _, one := range list {
		left := one.NotAfter.Sub(now)
		if left > warnBefore {
			continue
		}
		c.warned = now
		cure := "kontiki cert renew"
		if one.RenewAt == nil {
			cure = "back up the cluster and restore it to a new one"
		}
		c.log.Warn("a certificate expires soon", "what", one.What, "file", one.File, "expires", one.NotAfter, "days", int(left.Hours()/24), "cure", cure)
	}
}
