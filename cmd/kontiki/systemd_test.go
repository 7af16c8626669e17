package main

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNotifiesSystemd plays the service manager: the server says when its API
// answers, and when it begins to stop.
func TestNotifiesSystemd(t *testing.T) {
	t.Parallel()
	program(t, "KONTIKI_BIN")
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	expect := func(want string) {
		t.Helper()
		message := make([]byte, 256)
		if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		n, err := manager.Read(message)
		if err != nil || string(message[:n]) != want {
			t.Fatalf("it says %q, %v, want %q", message[:n], err, want)
		}
	}
	dir, api := filepath.Join(t.TempDir(), "data"), freeAddress(t)
	p := launch(t, dir, api, []string{"NOTIFY_SOCKET=" + socket}, "server", "--data-dir", dir, "--api-addr", api)
	expect("READY=1")
	p.end(syscall.SIGTERM)
	expect("STOPPING=1")
}
