package main

import (
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// notifySystemd tells the service manager, if one started this process and asked
// for it (Type=notify), how far it is.
func notifySystemd(state string, log hclog.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot tell systemd", "state", state, "error", err)
	}
}
