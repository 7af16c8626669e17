package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"kontiki/api"
	"kontiki/cluster"
	"kontiki/cluster/pki"
)

// newMembersCommand is the list, and a subcommand for each change.
func newMembersCommand() *cobra.Command {
	c := newConnection()
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes of a cluster, or change who is in it",
		Long: `List the nodes of a cluster, or change who is in it.

Any node answers; changes are decided by the leader. A refused change has
changed nothing, says why, and ends with exit code 1.`,
		Args: cobra.NoArgs,
	}
	list := newMembersListCommand(c)
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	c.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(list)
	for _, change := range memberChanges() {
		cmd.AddCommand(newMemberChangeCommand(c, change))
	}
	cmd.AddCommand(newTransferCommand(c))
	return cmd
}

// memberChange is a command about one member.
type memberChange struct {
	name, short, long string
	verb, below       string // of the request
}

func memberChanges() []memberChange {
	return []memberChange{
		{"remove", "Remove a stopped node", `Remove a stopped node from the cluster.

A node that still answers is not removed: stop it first. It is also refused if
the voters that are left could not form a majority. A node that starts again on
its old data, or under its name on an empty directory, enters the cluster anew.`, "DELETE", ""},
		{"promote", "Give a node a vote", `Give a node a vote, at once or as soon as it has caught up. That is only
needed after demote or --non-voter: other nodes get a vote by themselves.`, "POST", "/promote"},
		{"demote", "Take a node's vote away", `Take a node's vote away. It goes on to replicate and to serve, and gets no
vote again, not even after a restart, until it is promoted.`, "POST", "/demote"},
	}
}

func newMemberChangeCommand(c *connection, change memberChange) *cobra.Command {
	return &cobra.Command{
		Use: change.name + " NAME", Short: change.short, Long: change.long,
		Args: exactlyOne("the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pki.ValidateName(args[0]); err != nil {
				return err
			}
			return c.change(cmd.Context(), cmd.OutOrStdout(), change.verb, api.MembersPath+"/"+args[0]+change.below, "")
		},
	}
}

func newTransferCommand(c *connection) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "transfer-leadership [--to NAME]",
		Short: "Hand leadership to another voter",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), cmd.OutOrStdout(), "POST", api.TransferPath, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "name of the node to lead (default: the one that is furthest)")
	return cmd
}

// exactlyOne is cobra.ExactArgs(1), saying what is missing.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes %s: see %s --help", cmd.Name(), what, cmd.CommandPath())
		}
		return nil
	}
}

// change asks for a change and prints what was done.
func (c *connection) change(ctx context.Context, w io.Writer, verb, path, to string) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	request := client.Verb(verb).AbsPath(path)
	if to != "" {
		request.Param("to", to)
	}
	body, err := answerOf(request.Do(ctx))
	if apierrors.IsTimeout(err) {
		return fmt.Errorf("%w; see kontiki members, and try again if it was not done", err)
	}
	if err != nil {
		return err
	}
	var done api.Done
	if err := json.Unmarshal(body, &done); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, done.Message)
	return err
}

func newMembersListCommand(c *connection) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the nodes of a cluster",
		Long: `List the nodes of a cluster.

ROLE is leader, voter, nonvoter, or none for a node that the leader has not
added yet. STATUS is up; no-gossip for a node that answers and that others do
not see in gossip (is UDP blocked?); or unreachable for one that did not answer
the node that was asked. APPLIED is the last change that its readers see, LAG how
many are committed beyond that, CONTACT how long ago it heard the leader.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var members api.Members
			if err := checkOutput(output); err != nil {
				return err
			}
			if err := c.get(cmd.Context(), api.MembersPath, &members); err != nil {
				return err
			}
			return printMembers(cmd.OutOrStdout(), output, members)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml (default: a table)")
	return cmd
}

func checkOutput(output string) error {
	switch output {
	case "", "wide", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output %q: want wide, json or yaml", output)
}

func printMembers(w io.Writer, output string, members api.Members) error {
	switch output {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(members)
	case "yaml":
		data, err := yaml.Marshal(members)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "NAME\tROLE\tSTATUS\tADDRESS\tVERSION\tAPPLIED\tLAG\tCONTACT")
	if output == "wide" {
		fmt.Fprint(table, "\tPEER\tGOSSIP")
	}
	fmt.Fprintln(table)
	for _, m := range members.Members {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s", m.Name, memberRole(m), memberStatus(m), orNone(m.APIAddr), orNone(m.Version), memberProgress(m))
		if output == "wide" {
			fmt.Fprintf(table, "\t%s\t%s", orNone(m.PeerAddr), orNone(m.GossipAddr))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func memberRole(m cluster.Member) string {
	if m.Leader {
		return "leader"
	}
	return string(m.Role)
}

func memberStatus(m cluster.Member) string {
	switch {
	case !m.Reachable:
		return "unreachable"
	case !m.Alive:
		return "no-gossip"
	}
	return "up"
}

// memberProgress is the columns APPLIED, LAG and CONTACT.
func memberProgress(m cluster.Member) string {
	if !m.Reachable {
		return "<unknown>\t<unknown>\t<unknown>"
	}
	contact := (time.Duration(m.LastContact) * time.Millisecond).String()
	if m.LastContact < 0 {
		contact = "never"
	}
	return fmt.Sprintf("%d\t%d\t%s", m.Applied, m.Lag, contact)
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
