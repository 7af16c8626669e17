package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
)

// Config says how a laboratory is built.
type Config struct {
	Dir      string // for the machines' directories; made if missing
	Seed     uint64 // of the network's luck: loss and jitter
	Loopback bool   // machines share the loopback device, as if this process were not root
}

// Lab is a set of machines and the network between them.
type Lab struct {
	// Network is nil when the machines share the loopback device; Shared says why.
	Network *Switch
	Shared  error

	dir      string
	mu       sync.Mutex
	machines []*Machine
	added    byte
}

var errAsked = errors.New("as asked for")

// Open makes a laboratory without machines. It only fails if it cannot use its directory: if
// it cannot isolate machines, it says why in Shared.
func Open(cfg Config) (*Lab, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the directory for machines: %w", err)
	}
	l := &Lab{dir: dir, Shared: errAsked}
	if !cfg.Loopback {
		l.Shared = probe()
	}
	if l.Shared == nil {
		l.Network = NewSwitch(cfg.Seed)
	}
	return l, nil
}

// probe says why machines cannot be isolated here.
func probe() error {
	ns, err := newNamespace()
	if err != nil {
		return err
	}
	defer ns.close()
	device, err := ns.device(netip.MustParseAddr("198.51.100.254"))
	if err != nil {
		return err
	}
	return device.Close()
}

// Machine is a place for processes: an address and a directory of its own.
type Machine struct {
	Name string
	Addr netip.Addr

	lab       *Lab
	dir       string
	ns        *namespace // nil on shared loopback
	mu        sync.Mutex
	processes []*Process
}

// Add makes a machine. Its directory may exist: what is in it stays.
func (l *Lab) Add(name string) (*Machine, error) {
	m := &Machine{Name: name, lab: l, dir: filepath.Join(l.dir, name)}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.added++; l.added > 250 {
		return nil, errors.New("a laboratory has room for 250 machines")
	}
	if l.Network == nil {
		pid := os.Getpid() // so that two laboratories rarely meet
		m.Addr = netip.AddrFrom4([4]byte{127, 64 | byte(pid>>8)&63, byte(pid), l.added})
	} else if err := m.isolate(netip.AddrFrom4([4]byte{198, 51, 100, l.added})); err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	l.machines = append(l.machines, m)
	return m, nil
}

func (m *Machine) isolate(addr netip.Addr) (err error) {
	m.Addr = addr
	if m.ns, err = newNamespace(); err != nil {
		return err
	}
	device, err := m.ns.device(addr)
	if err != nil {
		m.ns.close()
		return err
	}
	m.lab.Network.Attach(addr, device)
	return nil
}

// Path names a file in the machine's directory, for this process and others on the host. It
// holds as long as the machine.
func (m *Machine) Path(elem ...string) string {
	dir := m.dir
	if m.ns != nil {
		dir = m.ns.path(dir)
	}
	return filepath.Join(append([]string{dir}, elem...)...)
}

// Inside names a file in the machine's directory for the machine's own processes.
func (m *Machine) Inside(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}

// Address is the machine's, with a port.
func (m *Machine) Address(port int) string {
	return netip.AddrPortFrom(m.Addr, uint16(port)).String()
}

// Dial connects from this machine. Address has an IP, not a name.
func (m *Machine) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{}
	if m.ns == nil {
		return dialer.DialContext(ctx, network, address)
	}
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("machine %s: %w: names are not looked up in it", m.Name, err)
	}
	nsErr := m.ns.visit(func() { conn, err = dialer.DialContext(ctx, network, address) })
	return conn, errors.Join(nsErr, err)
}

// Listen listens on this machine. Address has an IP, not a name.
func (m *Machine) Listen(network, address string) (listener net.Listener, err error) {
	if m.ns == nil {
		return net.Listen(network, address)
	}
	nsErr := m.ns.visit(func() { listener, err = net.Listen(network, address) })
	return listener, errors.Join(nsErr, err)
}

// Close kills the machine's processes and ends its network; its files stay.
func (m *Machine) Close() error {
	m.mu.Lock()
	processes := m.processes
	m.mu.Unlock()
	for _, p := range processes {
		p.Kill()
	}
	if m.ns != nil {
		m.lab.Network.Detach(m.Addr)
		m.ns.close()
	}
	return nil
}

// Close ends all machines. Files stay, except those on disks of a given size.
func (l *Lab) Close() error {
	l.mu.Lock()
	machines := l.machines
	l.machines = nil
	l.mu.Unlock()
	var errs []error
	for _, m := range machines {
		errs = append(errs, m.Close())
	}
	if l.Network != nil {
		l.Network.Close()
	}
	return errors.Join(errs...)
}
