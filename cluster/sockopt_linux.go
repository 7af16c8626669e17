package cluster

import (
	"net"
	"syscall"
)

// setUserTimeout makes the kernel give up a connection whose peer has not acknowledged data
// for five seconds. Without it a peer whose machine vanished holds requests for a quarter
// of an hour. Best effort.
func setUserTimeout(conn *net.TCPConn) {
	const tcpUserTimeout, milliseconds = 18, 5000
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, milliseconds)
		})
	}
}
