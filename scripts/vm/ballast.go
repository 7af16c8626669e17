package vm

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const (
	ballast  = "ballast"
	maxPiece = 1 << 20
	minPiece = 512
)

// Fill writes a ballast file until the disk of a machine with a Limit is full to the last
// block.
func (m *Machine) Fill() error {
	file, err := os.OpenFile(m.Path(ballast), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("machine %s: cannot fill the disk: %w", m.Name, err)
	}
	defer file.Close()
	for piece := maxPiece; piece >= minPiece; {
		_, err := file.Write(make([]byte, piece))
		if err == nil && piece < maxPiece {
			err = file.Sync() // what was promised and cannot be kept is found only now
		}
		if errors.Is(err, syscall.ENOSPC) {
			piece /= 2
		} else if err != nil {
			return fmt.Errorf("machine %s: cannot fill the disk: %w", m.Name, err)
		}
	}
	return nil
}

// Empty removes what Fill wrote.
func (m *Machine) Empty() error { return os.Remove(m.Path(ballast)) }
