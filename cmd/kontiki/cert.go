package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/api"
	"kontiki/cluster"
	"kontiki/cluster/pki"
)

func newCertCommand() *cobra.Command {
	cmd := group("cert", "Look at and renew the nodes' certificates")
	cmd.Long = `Look at and renew the nodes' certificates.

A running node renews its own by itself when two thirds of their life are over,
and uses them without a restart.`
	cmd.AddCommand(newCertStatusCommand(), newCertRenewCommand())
	return cmd
}

func newCertStatusCommand() *cobra.Command {
	c, local := newConnection(), localCluster{}
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the certificates of all nodes, or of the one with --data-dir",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.certificates(cmd.Context(), &local, http.MethodGet, func(*pki.Cluster) error { return nil })
			if err != nil && len(list) == 0 {
				return err
			}
			if format == "json" {
				return errors.Join(printJSON(cmd.OutOrStdout(), list), err)
			}
			return errors.Join(printCertificates(cmd.OutOrStdout(), list, time.Now()), err)
		},
	}
	addFormat(cmd, &format)
	local.AddFlags(cmd.Flags())
	c.AddFlags(cmd.Flags())
	return cmd
}

func newCertRenewCommand() *cobra.Command {
	c, local := newConnection(), localCluster{}
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Renew the certificates of all nodes, or of the one with --data-dir",
		Long: `Renew the certificates of all nodes, or of the one with --data-dir, now.

Connections that are open go on. A running node whose files are renewed with
--data-dir takes them up within the hour.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.certificates(cmd.Context(), &local, http.MethodPost, local.renew)
			for _, node := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "node/%s certificates renewed\n", node.Node)
			}
			return err
		},
	}
	local.AddFlags(cmd.Flags())
	c.AddFlags(cmd.Flags())
	return cmd
}

// certificates asks every member that is alive, or looks at this machine's
// files, after having worked on them.
func (c *connection) certificates(ctx context.Context, local *localCluster, method string, work func(*pki.Cluster) error) ([]api.NodeCertificates, error) {
	root, err := local.load()
	switch {
	case err != nil:
		return nil, err
	case root == nil:
		return c.allCertificates(ctx, method)
	case local.dataDir == "":
		return nil, fmt.Errorf("--pki-dir names the cluster's CA: give --data-dir too, for the node's own")
	}
	if err := work(root); err != nil {
		return nil, err
	}
	identity, err := pki.LoadNode(root, identityDir(local.dataDir))
	if err != nil {
		return nil, err
	}
	list, err := certificateStatus(root, identity, local.pkiDir, local.dataDir)
	return []api.NodeCertificates{{Node: identity.Name, Certificates: list}}, err
}

// allCertificates asks all members at once, as one that hangs must not hold up the rest.
func (c *connection) allCertificates(ctx context.Context, method string) ([]api.NodeCertificates, error) {
	var members api.Members
	if err := c.get(ctx, api.MembersPath, &members); err != nil {
		return nil, err
	}
	alive := slices.DeleteFunc(members.Members, func(m cluster.Member) bool { return !m.Alive || m.APIAddr == "" })
	list, errs := make([]api.NodeCertificates, len(alive)), make([]error, len(alive))
	var asking sync.WaitGroup
	for i, m := range alive {
		asking.Go(func() {
			client, err := c.clientAt(m.APIAddr)
			if err == nil {
				err = ask(ctx, client, method, api.CertificatesPath, nil, &list[i])
			}
			if err != nil {
				errs[i] = fmt.Errorf("node %s: %w", m.Name, err)
			}
		})
	}
	asking.Wait()
	list = slices.DeleteFunc(list, func(n api.NodeCertificates) bool { return n.Node == "" })
	return list, errors.Join(errs...)
}

// renew issues the certificates on this machine again.
func (l *localCluster) renew(root *pki.Cluster) error {
	if err := checkOwner(l.dataDir); err != nil {
		return err
	}
	if _, err := pki.RenewNode(root, identityDir(l.dataDir)); err != nil {
		return err
	}
	file := filepath.Join(l.dataDir, adminFile)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return err
	}
	cluster := config.Clusters[config.CurrentContext]
	if cluster == nil {
		return fmt.Errorf("%s names no server: remove it and restart the node", file)
	}
	return writeKubeconfig(file, root, config.CurrentContext, cluster.Server)
}

func printCertificates(w io.Writer, list []api.NodeCertificates, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODE\tCERTIFICATE\tSUBJECT\tEXPIRES\tLEFT\tRENEWS")
	for _, node := range list {
		for _, cert := range node.Certificates {
			left, renews := "expired", "never"
			if cert.NotAfter.After(now) {
				left = duration.HumanDuration(cert.NotAfter.Sub(now))
			}
			if cert.RenewAt != nil {
				renews = cert.RenewAt.UTC().Format(time.DateOnly)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", node.Node, cert.What, cert.Subject, cert.NotAfter.UTC().Format(time.DateOnly), left, renews)
		}
	}
	return table.Flush()
}
