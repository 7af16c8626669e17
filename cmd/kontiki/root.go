package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot is the command line: a file a subcommand.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kontiki",
		Short:         "The Kubernetes API on a raft",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q: kontiki --help lists them", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnv(cmd.Flags())
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		newServerCommand(), newTokenCommand(), newMembersCommand(), newStatusCommand(),
		newCertCommand(), newKubeconfigCommand(), newProxyCommand(),
		newSnapshotCommand(), newRecoverCommand(), newVersionCommand(),
	)
	return root
}

// group is a command that only has others below it. Cobra would take a misspelt
// one for a wish for help, and end well.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// flagsFromEnv sets each flag that the command line left out from KONTIKI_ and
// its name in capitals: --token-auth-file from KONTIKI_TOKEN_AUTH_FILE.
func flagsFromEnv(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		name := "KONTIKI_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if err != nil || flag.Changed || !ok {
			return
		}
		if setErr := flags.Set(flag.Name, value); setErr != nil {
			err = fmt.Errorf("environment variable %s: %w", name, setErr)
		}
	})
	return err
}
