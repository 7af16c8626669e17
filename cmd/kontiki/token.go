package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/api"
	"kontiki/cluster/pki"
)

func newTokenCommand() *cobra.Command {
	cmd := group("token", "Make tokens with which nodes join a cluster")
	cmd.AddCommand(newTokenCreateCommand())
	return cmd
}

func newTokenCreateCommand() *cobra.Command {
	c, local := newConnection(), localCluster{}
	var life time.Duration
	var format string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Print a join token",
		Long: `Print a join token, for "kontiki server --join HOST:PORT --token TOKEN".

It asks the cluster of the kubeconfig. With --data-dir or --pki-dir, on a
machine that has the cluster's files, it asks nobody: that works before there
are enough nodes to form the cluster.

Whoever has the token can become a member, and so read and write everything,
until it expires. Any number of nodes can use it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var token api.JoinToken
			root, err := local.load()
			switch {
			case err != nil:
				return err
			case root != nil:
				token.Token, token.Expires, err = root.NewToken(life)
			default:
				err = c.post(cmd.Context(), api.TokensPath, api.TokenRequest{TTL: metav1.Duration{Duration: life}}, &token)
			}
			if err != nil {
				return err
			}
			if format == "json" {
				return printJSON(cmd.OutOrStdout(), token)
			}
			fmt.Fprintln(cmd.OutOrStdout(), token.Token)
			return nil
		},
	}
	cmd.Flags().DurationVar(&life, "ttl", time.Hour, "how long the token can be used")
	addFormat(cmd, &format)
	local.AddFlags(cmd.Flags())
	c.AddFlags(cmd.Flags())
	return cmd
}

// localCluster finds a cluster's files on this machine.
type localCluster struct{ dataDir, pkiDir string }

// AddFlags makes the flags of a command that can work without a server.
func (l *localCluster) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.dataDir, "data-dir", "", "data directory of a node on this machine: use its files, ask no server")
	flags.StringVar(&l.pkiDir, "pki-dir", "", "directory with the cluster's CA, if it is not in the data directory")
}

// load returns nil if no directory is given.
func (l *localCluster) load() (*pki.Cluster, error) {
	switch {
	case l.pkiDir != "":
	case l.dataDir == "":
		return nil, nil
	default:
		l.pkiDir = pkiDir(l.dataDir)
	}
	if !pki.Exists(l.pkiDir) {
		return nil, fmt.Errorf("there is no cluster in %s: start the first node, it makes one", l.pkiDir)
	}
	return pki.Load(l.pkiDir)
}

// addFormat makes -o, for commands that print for people or for scripts.
func addFormat(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "json, or nothing for people")
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *format != "" && *format != "json" {
			return fmt.Errorf("--output %q: want json, or leave it out", *format)
		}
		return inner(cmd, args)
	}
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
