//go:build faults && !amd64

package main

import "errors"

// shiftClock needs to know how the processor jumps.
func shiftClock(string) error { return errors.New("the clock can only be shifted on amd64") }
