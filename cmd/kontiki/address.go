package main

import (
	"net"
	"os"
)

// reachable turns an address that was listened on into one that can be dialed:
// a wildcard becomes the host at which other nodes reach this one.
func reachable(address, peerAddr string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if isWildcard(host) {
		host = "127.0.0.1"
		if peer, _, err := net.SplitHostPort(peerAddr); err == nil && !isWildcard(peer) {
			host = peer
		}
	}
	return net.JoinHostPort(host, port)
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// certificateHosts lists the names and addresses that this node's certificate
// must cover: the host's name, the address that was asked for, and if that is a
// wildcard, every address that the host has now.
func certificateHosts(cfg Config) ([]string, error) {
	host, _, err := net.SplitHostPort(cfg.APIAddr)
	if err != nil {
		return nil, err
	}
	hosts := []string{cfg.Name}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if !isWildcard(host) {
		return append(hosts, host), nil
	}
	if peer, _, err := net.SplitHostPort(cfg.PeerAddr); err == nil && !isWildcard(peer) {
		hosts = append(hosts, peer)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		if network, ok := addr.(*net.IPNet); ok && !network.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, network.IP.String())
		}
	}
	return hosts, nil
}
