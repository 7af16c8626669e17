package vm

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// mtu is big, so that few packets carry much, and not so big that TCP, whose windows are
// counted in segments at first, stalls on a lost one.
const mtu = 9000

var errClosed = errors.New("the machine is closed")

// namespace is a network and a mount namespace without a name, held by one thread. When
// the thread ends, so do they, and by Pdeathsig the processes that it started.
type namespace struct {
	tid   int
	net   *os.File // what visitors enter
	tasks chan func()
	quit  chan struct{}
	gone  chan struct{}
}

// newNamespace starts the thread. It is never the main one, which cannot end.
func newNamespace() (*namespace, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("making network namespaces needs root")
	}
	ns := &namespace{tasks: make(chan func()), quit: make(chan struct{}), gone: make(chan struct{})}
	ready := make(chan error)
	go ns.hold(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return ns, nil
}

func (ns *namespace) hold(ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	if ns.tid = unix.Gettid(); ns.tid == os.Getpid() {
		done := make(chan struct{})
		go func() { defer close(done); ns.hold(ready) }() // on another thread: this one is held
		<-done
		runtime.UnlockOSThread()
		return
	}
	defer close(ns.gone)
	if err := ns.enter(); err != nil {
		ready <- err
		return
	}
	ready <- nil
	defer ns.net.Close()
	for {
		select {
		case task := <-ns.tasks:
			task()
		case <-ns.quit:
			return
		}
	}
}

// enter moves this thread into new namespaces, and brings their loopback device up.
func (ns *namespace) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a network namespace: %w", err)
	}
	// What is mounted here stays here, and what the host unmounts goes here, too.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	var err error
	if ns.net, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", ns.tid)); err != nil {
		return err
	}
	return configure("lo", netip.Addr{})
}

// do runs a task on the namespace's thread, for what must belong to it.
func (ns *namespace) do(task func()) error {
	done := make(chan struct{})
	select {
	case ns.tasks <- func() { defer close(done); task() }:
		<-done
		return nil
	case <-ns.gone:
		return errClosed
	}
}

// visit runs a task that may take time on a thread of its own that enters the network.
func (ns *namespace) visit(task func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, as above
		if err := unix.Setns(int(ns.net.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("%w: %w", errClosed, err)
			return
		}
		task()
		done <- nil
	}()
	return <-done
}

// device makes the namespace's TUN device, with an address.
func (ns *namespace) device(addr netip.Addr) (device *os.File, err error) {
	nsErr := ns.do(func() { device, err = openTUN(addr) })
	return device, errors.Join(nsErr, err)
}

func openTUN(addr netip.Addr) (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	request, err := unix.NewIfreq("eth0")
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = configure("eth0", addr)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot make a TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// configure gives a device of this thread's namespace an address, if it is one, and brings it up.
func configure(name string, addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if addr.IsValid() {
		if err := address(fd, request, addr); err != nil {
			return fmt.Errorf("cannot configure %s: %w", name, err)
		}
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func address(fd int, request *unix.Ifreq, addr netip.Addr) error {
	ip := addr.As4()
	if err := request.SetInet4Addr(ip[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request); err != nil {
		return err
	}
	if err := request.SetInet4Addr([]byte{255, 255, 255, 0}); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFNETMASK, request); err != nil {
		return err
	}
	request.SetUint32(mtu)
	return unix.IoctlIfreq(fd, unix.SIOCSIFMTU, request)
}

// path is how others see a file of this namespace, on its own mounts.
func (ns *namespace) path(file string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/task/%d/root", os.Getpid(), ns.tid), file)
}

// close ends the thread; it must not be called by a task.
func (ns *namespace) close() {
	select {
	case ns.quit <- struct{}{}:
	case <-ns.gone:
	}
	<-ns.gone
}

// attributes makes a process that dies with the thread that started it, and that a ^C in
// the terminal is not for.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
