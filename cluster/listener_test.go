package cluster

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// deafAddress is one where nobody answers, as that of a machine that is gone: the queue of
// connections that wait to be accepted is full, so that the kernel drops what comes.
func deafAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: bound.(*syscall.SockaddrInet4).Port}
	for range 16 {
		conn, err := net.DialTimeout("tcp", addr.String(), 200*time.Millisecond)
		if err != nil {
			return addr.String()
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the queue does not fill up")
	return ""
}

// TestCloseEndsDials: raft's Shutdown waits for its dials, one after the other, each of
// which takes PeerTimeout when the other machine is silent; a service manager kills a
// server long before that.
func TestCloseEndsDials(t *testing.T) {
	l, err := listen(&Config{PeerAddr: "127.0.0.1:0", Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	silent := deafAddress(t)
	dialed := make(chan error, 1)
	go func() {
		_, err := l.dial("gone", silent, protoRaft, time.Hour)
		dialed <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-dialed:
		if err == nil {
			t.Error("a machine that is silent was reached")
		}
	case <-time.After(20 * time.Second):
		t.Error("a dial goes on after Close")
	}
}
