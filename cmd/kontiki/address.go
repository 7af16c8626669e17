package main

import (
	"net"
	"os"
)

// reachable turns an address that was listened on into one that can be dialed:
// a wildcard becomes loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
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
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return append(hosts, host), nil
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
