//go:build !linux

package vm

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
)

var errNotLinux = errors.New("network namespaces need Linux")

// namespace cannot be made here, so its methods are never called.
type namespace struct{}

func newNamespace() (*namespace, error)                { return nil, errNotLinux }
func (*namespace) do(func()) error                     { return errNotLinux }
func (*namespace) visit(func()) error                  { return errNotLinux }
func (*namespace) device(netip.Addr) (*os.File, error) { return nil, errNotLinux }
func (*namespace) path(file string) string             { return file }
func (*namespace) close()                              {}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Limit needs Linux.
func (m *Machine) Limit(int64) error { return errNotLinux }
