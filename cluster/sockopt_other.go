//go:build !linux

package cluster

import "net"

// setUserTimeout is Linux's; elsewhere keep-alives have to do.
func setUserTimeout(*net.TCPConn) {}
