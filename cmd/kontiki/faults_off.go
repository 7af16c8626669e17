//go:build !faults

package main

import "github.com/hashicorp/go-hclog"

// acceptFaults does nothing: only a build with -tags faults, for chaos tests, can be told to fail.
func acceptFaults(*Config, hclog.Logger) error { return nil }
