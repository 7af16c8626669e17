package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/api"
	"kontiki/cluster"
)

func newSnapshotCommand() *cobra.Command {
	cmd := group("snapshot", "Back up and restore a cluster")
	cmd.AddCommand(newSnapshotSave(), newSnapshotInspect(), newSnapshotRestore())
	return cmd
}

func newSnapshotSave() *cobra.Command {
	c, stale := newConnection(), false
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Write a backup of a running cluster to a file (- for standard output)",
		Long: `Write a backup of a running cluster to a file (- for standard output).

The backup is the state at one moment, with everything that was acknowledged
before. The file appears under its name only when it is whole, checked and on
disk. It holds all objects in the clear: keep it as safe as the cluster.`,
		Args: exactlyOne("the name of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saveSnapshot(cmd, c, args[0], stale)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&stale, "stale", false, "take what the node has, fresh or not; works without a quorum")
	return cmd
}

func saveSnapshot(cmd *cobra.Command, c *connection, file string, stale bool) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	request := client.Get().AbsPath(api.SnapshotPath)
	if stale {
		request.Param("stale", "true")
	}
	body, err := request.MaxRetries(0).Stream(cmd.Context()) // the server has waited for a quorum already
	if apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) {
		return fmt.Errorf("%w; --stale takes what the node has, fresh or not", err)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	progress := newProgress(cmd.ErrOrStderr(), "received", 0)
	source := progress.reader(body)
	if file == "-" {
		_, err := summarize(io.TeeReader(source, cmd.OutOrStdout()))
		progress.end()
		return explainSave(err)
	}
	var summary backupSummary
	err = writeWhole(file, func(w io.Writer) error {
		var err error
		summary, err = summarize(io.TeeReader(source, w))
		return explainSave(err)
	})
	progress.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "saved %s: index %d, term %d, %d objects, %s\n", file, summary.Index, summary.Term, summary.Objects, byteSize(progress.done.Load()))
	return nil
}

// explainSave blames the transfer for a backup that did not arrive whole.
func explainSave(err error) error {
	if errors.Is(err, cluster.ErrBadBackup) {
		return fmt.Errorf("the backup did not arrive whole, try again: %w", err)
	}
	return err
}

func newSnapshotInspect() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a backup and show what is in it (- for standard input)",
		Args:  exactlyOne("the name of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: want json, or nothing for text", output)
			}
			summary, err := summarizeFile(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(summary)
			}
			return summary.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or nothing for text")
	return cmd
}

func newSnapshotRestore() *cobra.Command {
	c, yes := newConnection(), false
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace everything in a running cluster by a backup",
		Long: `Replace everything in a running cluster by a backup.

The file is checked here, sent to one node, and checked there to its end before
anything changes. Then all nodes change over at the same entry of the log, or
none does. What was written since the backup is gone. Every object comes back
with a resourceVersion that is higher than any seen before, and every watch is
told to list anew (410), which informers do by themselves.`,
		Args: exactlyOne("the name of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restoreSnapshot(cmd, c, args[0], yes)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func restoreSnapshot(cmd *cobra.Command, c *connection, path string, yes bool) error {
	summary, err := summarizeFile(nil, path)
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Replace everything in the cluster at %s by %s?\n%d objects of %s, index %d. What was written since is lost.",
		client.Get().URL().Host, path, summary.Objects, summary.Time.Local().Format("2006-01-02 15:04:05 MST"), summary.Index)
	if err := confirm(cmd, yes, question); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	progress := newProgress(cmd.ErrOrStderr(), "sent", summary.FileBytes)
	body, err := answerOf(client.Post().AbsPath(api.SnapshotPath).Body(progress.reader(file)).Do(cmd.Context()))
	progress.end()
	if err != nil {
		return explainRestore(err, progress.done.Load() > 0)
	}
	var restored cluster.Restored
	if err := json.Unmarshal(body, &restored); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "restored %s: %d objects, now at resourceVersion %d\n", path, restored.Objects, restored.At)
	return nil
}

// explainRestore adds what a lost answer leaves open: one that the server did not
// give, or in which it says that it does not know.
func explainRestore(err error, sent bool) error {
	var answer apierrors.APIStatus
	if apierrors.IsTimeout(err) || sent && !errors.As(err, &answer) {
		return fmt.Errorf("%w; look whether the cluster has the old objects or the restored ones, it is one or the other", err)
	}
	return err
}

// confirm asks on standard input, unless yes. No answer is no.
func confirm(cmd *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s\nType yes to go on: ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("not confirmed, nothing was changed (--yes does not ask)")
	}
	return nil
}
