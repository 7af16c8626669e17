package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontiki/api"
)

func newMembersCommand() *cobra.Command {
	c := newConnection()
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes of a cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var members api.Members
			if err := c.get(cmd.Context(), api.MembersPath, &members); err != nil {
				return err
			}
			return printMembers(cmd.OutOrStdout(), members)
		},
	}
	c.AddFlags(cmd.Flags())
	return cmd
}

func printMembers(w io.Writer, members api.Members) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tROLE\tALIVE\tAPI\tVERSION")
	for _, m := range members.Members {
		role := string(m.Role)
		if m.Leader {
			role = "leader"
		}
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\t%s\n", m.Name, role, m.Alive, m.APIAddr, m.Version)
	}
	return table.Flush()
}
