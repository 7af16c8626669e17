package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Limit gives the machine's directory, which it empties, a file system of its own of so many
// bytes: ext4 on a loop device, or a tmpfs where there are none. It goes with the machine.
func (m *Machine) Limit(bytes int64) error {
	if m.ns == nil {
		return fmt.Errorf("machine %s: a disk of its own needs a namespace: %w", m.Name, m.lab.Shared)
	}
	var err error
	nsErr := m.ns.do(func() {
		if err = mountLoop(m.dir, bytes); err != nil {
			err = mountMemory(m.dir, bytes, err)
		}
	})
	return errors.Join(nsErr, err)
}

func mountMemory(dir string, bytes int64, why error) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return fmt.Errorf("cannot limit the disk: %w; nor by a tmpfs: %w", why, err)
	}
	return nil
}

// mountLoop runs on the namespace's thread, so that the mount is the machine's alone. The
// image has no name and the loop device clears itself, so nothing outlives the mount.
func mountLoop(dir string, bytes int64) error {
	image, err := os.CreateTemp("", "vm-disk-")
	if err != nil {
		return err
	}
	defer image.Close()
	defer os.Remove(image.Name())
	if err := image.Truncate(bytes); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// No blocks for root alone, and the tables now: a background thread would count as load.
	make := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image.Name())
	if out, err := make.CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	loop, err := attachLoop(image)
	if err != nil {
		return err
	}
	defer loop.Close()
	return unix.Mount(loop.Name(), dir, "ext4", 0, "")
}

// attachLoop tries again when another process takes the free device first.
func attachLoop(image *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 10 {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd())}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		if err = unix.IoctlLoopConfigure(int(loop.Fd()), &config); err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("no free loop device")
}
