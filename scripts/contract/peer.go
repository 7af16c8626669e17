package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kontiki/scripts/servers"
)

const (
	adminToken  = "contract-admin"
	nobodyToken = "contract-nobody"
	// tokens is the token file of both servers.
	tokens = adminToken + ",admin,admin-uid,\"system:masters\"\n" + nobodyToken + ",nobody,nobody-uid\n"
)

// startPeer starts etcd, kube-apiserver and the two controllers that Kontiki has
// too, and returns the server once it is ready. Data and logs go to dir. What it
// has started it returns in any case.
func startPeer(ctx context.Context, binaries, dir string) (*servers.Group, *server, error) {
	peer := servers.Peer{Binaries: binaries, Dir: dir, Members: 1, Tokens: tokens, Token: adminToken}
	group, err := peer.Start(ctx)
	if err != nil {
		return group, nil, err
	}
	at := group.Endpoints[0]
	s, err := newServer("peer", at.URL, at.CA)
	if err != nil {
		return group, nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigText, at.URL, peer.CAFile(), adminToken), 0o600); err != nil {
		return group, nil, err
	}
	_, err = group.Start(dir, "kube-controller-manager", filepath.Join(binaries, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--controllers=garbage-collector-controller,namespace-controller",
		"--leader-elect=false", "--secure-port=0")
	return group, s, err
}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: peer
clusters: [{name: peer, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: admin, user: {token: "%s"}}]
contexts: [{name: peer, context: {cluster: peer, user: admin}}]
`

// pids are what to stop by hand if the servers are kept.
func pids(group *servers.Group) string {
	if group == nil {
		return ""
	}
	return strings.Trim(fmt.Sprint(group.Pids()), "[]")
}
