package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"kontiki/cluster"
	"kontiki/cluster/pki"
)

func newRecoverCommand() *cobra.Command {
	cfg, yes, force := DefaultConfig(), false, false
	cmd := &cobra.Command{
		Use:   "recover --data-dir DIR",
		Short: "Go on with one node of a cluster that has lost its majority for good",
		Long: `Go on with one node of a cluster that has lost its majority for good.

Run it on one surviving node, with its server stopped: on the one with the
newest data. It makes that node the only member of its cluster. It asks the
other members that it knows, and refuses while one with newer data answers or
while a majority is well. Every object gets a new resourceVersion.

Then start this server as before. The other machines join it as new ones, with
empty data directories and new names: never start them on their old data.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return recoverNode(cmd, cfg, yes, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.DataDir, "data-dir", "", "data directory of the stopped server (required)")
	flags.StringVar(&cfg.PKIDir, "pki-dir", "", "as for the server (default: DATA-DIR/cluster)")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	flags.BoolVar(&force, "force", false, "go on although a member with newer data, or a majority, answers")
	return cmd
}

func recoverNode(cmd *cobra.Command, cfg Config, yes, force bool) error {
	node, err := stoppedNode(&cfg)
	if err != nil {
		return err
	}
	node.Logger = hclog.New(&hclog.LoggerOptions{Name: "kontiki", Level: hclog.Warn, Output: cmd.ErrOrStderr()})
	fmt.Fprintln(cmd.ErrOrStderr(), "asking the other members ...")
	recovery, err := cluster.OpenRecovery(cmd.Context(), node)
	if err != nil {
		return err
	}
	defer recovery.Close()
	if err := printRecovery(cmd.ErrOrStderr(), recovery); err != nil {
		return err
	}
	if refusal := recovery.Refusal(); refusal != nil {
		if !force {
			return fmt.Errorf("refused: %w (--force goes on all the same)", refusal)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "\nForced, although %v.\n", refusal)
	}
	question := fmt.Sprintf("\nWrites that only the lost members had are lost, also acknowledged ones. Writes that are in this\n"+
		"node's log and were never acknowledged may become real. Members other than %s must never be\nstarted on their old data again. Go on?", recovery.Name)
	if err := confirm(cmd, yes, question); err != nil {
		return err
	}
	saved, err := recovery.Run()
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is now the only member of its cluster: start its server, then join new ones.\nThe files of before are in %s.\n", recovery.Name, saved)
	return nil
}

// stoppedNode is the identity that a server has left in its directories.
func stoppedNode(cfg *Config) (cluster.Config, error) {
	if err := cfg.Complete(); err != nil {
		return cluster.Config{}, err
	}
	if err := checkOwner(cfg.DataDir); err != nil {
		return cluster.Config{}, err
	}
	name, err := cluster.NodeName(cfg.DataDir)
	if err != nil {
		return cluster.Config{}, err
	}
	root, err := pki.Load(cfg.PKIDir)
	if err != nil {
		return cluster.Config{}, fmt.Errorf("no cluster CA, see --pki-dir: %w", err)
	}
	node := cluster.DefaultConfig()
	node.Name, node.DataDir = name, cfg.DataDir
	node.Identity, err = pki.LoadIdentity(root, filepath.Join(cfg.DataDir, "pki"), name)
	return node, err
}

func printRecovery(w io.Writer, r *cluster.Recovery) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tLAST TERM\tLAST INDEX\tADDRESS")
	fmt.Fprintf(table, "%s (here)\t%d\t%d\t\n", r.Name, r.Last.Term, r.Last.Index)
	for _, peer := range r.Peers {
		if peer.Err != nil {
			fmt.Fprintf(table, "%s\t?\t?\t%s (no answer: %v)\n", peer.Name, peer.Addr, peer.Err)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", peer.Name, peer.Last.Term, peer.Last.Index, peer.Addr)
	}
	return table.Flush()
}
