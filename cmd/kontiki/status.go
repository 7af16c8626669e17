package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kontiki/api"
)

const (
	// statusTimeout bounds one question; the server waits a second for members.
	statusTimeout = 5 * time.Second
	// statusInterval is the least time between two pictures of --watch.
	statusInterval = 500 * time.Millisecond
)

// errNoLeader makes the exit code of status tell scripts what its screen tells
// people.
var errNoLeader = errors.New("the cluster has no leader: see the warnings above")

func newStatusCommand() *cobra.Command {
	c := newConnection()
	s := statusCommand{interval: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen how a cluster is",
		Long: `Show on one screen how a cluster is: leader, members, lag, rates, objects,
disks, certificates, and what an operator should know.

One node is asked, and it asks the others; one that does not answer within a
second is shown as such. The exit code is 1 if that node knows no leader, or
cannot be asked.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.output != "" && s.output != "json" {
				return fmt.Errorf("-o %q: want json", s.output)
			}
			s.get = func(ctx context.Context) (status api.Status, err error) {
				ctx, cancel := context.WithTimeout(ctx, statusTimeout)
				defer cancel()
				return status, c.get(ctx, api.StatusPath, &status)
			}
			if s.watch {
				return s.follow(cmd.Context(), newScreen(cmd.OutOrStdout()))
			}
			return s.once(cmd.Context(), cmd.OutOrStdout())
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&s.output, "output", "o", "", "json, for scripts")
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", false, "keep it live, until interrupted")
	cmd.Flags().DurationVar(&s.interval, "interval", s.interval, "time between two pictures of --watch, at least 500ms")
	return cmd
}

// statusCommand is what the flags of status say.
type statusCommand struct {
	output   string
	watch    bool
	interval time.Duration
	get      func(context.Context) (api.Status, error)
}

func (s statusCommand) once(ctx context.Context, w io.Writer) error {
	status, err := s.get(ctx)
	if err != nil {
		return err
	}
	if err := s.print(w, status); err != nil {
		return err
	}
	if status.Leader == "" {
		return errNoLeader
	}
	return nil
}

func (s statusCommand) print(w io.Writer, status api.Status) error {
	if s.output == "json" {
		return json.NewEncoder(w).Encode(status)
	}
	return printStatus(w, status)
}

// follow shows one picture after the other until ctx ends. A node that cannot be
// asked is a picture too: it may come back.
func (s statusCommand) follow(ctx context.Context, screen *screen) error {
	ticker := time.NewTicker(max(s.interval, statusInterval))
	defer ticker.Stop()
	for {
		status, err := s.get(ctx)
		if ctx.Err() != nil {
			return nil // interrupted, which is how this ends
		}
		err = screen.show(func(w io.Writer) error {
			if err != nil && s.output == "" {
				fmt.Fprintf(w, "%s  cannot ask: %v\n", time.Now().Format(time.TimeOnly), err)
				return nil
			}
			if err != nil {
				return json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
			}
			return s.print(w, status)
		})
		if err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
