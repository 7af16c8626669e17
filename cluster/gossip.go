package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
)

const (
	// reclaimAfter is how long a node must be gone before its name may come back from
	// another address.
	reclaimAfter = 30 * time.Second

	// gossipPacket leaves room for encryption and tunnels below the smallest usual MTU.
	gossipPacket = 1300

	// rejoinEvery is how often a node calls again at addresses that gossip has lost: after a
	// long partition neither side remembers the other.
	rejoinEvery = 30 * time.Second

	// tellWait is hardly a wait: the news is on its way in any case.
	tellWait = 10 * time.Millisecond

	// leaveWait bounds the goodbye to other members.
	leaveWait = time.Second
)

// startGossip opens the gossip port. Members are found by joinLoop.
func (n *Node) startGossip() error {
	cfg, err := n.gossipConfig()
	if err != nil {
		return err
	}
	if n.gossip, err = memberlist.Create(cfg); err != nil {
		return fmt.Errorf("%w for gossip: %w: is another kontiki running, or is --gossip-addr %s not this machine's?", ErrListen, err, n.cfg.GossipAddr)
	}
	// Now, while nothing changes it: memberlist hands out its own record of this node.
	n.gossipAddr = n.gossip.LocalNode().Address()
	return nil
}

func (n *Node) gossipConfig() (*memberlist.Config, error) {
	cfg := memberlist.DefaultLANConfig()
	cfg.Name = n.cfg.Name
	cfg.Delegate, cfg.Events, cfg.Alive, cfg.Conflict = n.roster, n.roster, n.roster, n.roster
	cfg.Logger = n.logger.Named("gossip").StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true})

	// Holding the key is full trust in gossip, which is why gossip decides nothing.
	cfg.SecretKey = n.cfg.GossipKey
	cfg.GossipVerifyIncoming, cfg.GossipVerifyOutgoing = true, true
	cfg.Label = n.cfg.Identity.ClusterID()
	// A few nodes need no compression, and memberlist 0.6.0 decompresses without a bound.
	cfg.EnableCompression = false
	cfg.DeadNodeReclaimTime = reclaimAfter
	cfg.UDPBufferSize = gossipPacket
	cfg.GossipInterval, cfg.ProbeInterval, cfg.ProbeTimeout = n.cfg.GossipInterval, n.cfg.ProbeInterval, n.cfg.ProbeTimeout
	cfg.TCPTimeout = 5 * time.Second

	host, port, err := splitHostPort(n.cfg.GossipAddr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "0.0.0.0"
	}
	cfg.BindAddr, cfg.BindPort, cfg.AdvertisePort = host, port, port
	return cfg, n.gossipAdvertise(cfg)
}

// gossipAdvertise sets what others dial, which memberlist wants as an IP address.
func (n *Node) gossipAdvertise(cfg *memberlist.Config) error {
	host, _, err := net.SplitHostPort(string(n.listener.advertise))
	if err != nil {
		return err
	}
	if n.cfg.GossipAdvertise != "" {
		if host, cfg.AdvertisePort, err = splitHostPort(n.cfg.GossipAdvertise); err != nil {
			return err
		}
	}
	ips, err := net.LookupIP(host)
	if err != nil || len(ips) == 0 {
		return fmt.Errorf("%w: the address to advertise for gossip, %s, does not resolve: %v", ErrConfig, host, err)
	}
	cfg.AdvertiseAddr = ips[0].String()
	return nil
}

func splitHostPort(addr string) (string, int, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %q is not host:port", ErrConfig, addr)
	}
	port, err := strconv.Atoi(service)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%w: port of %q is not a number up to 65535", ErrConfig, addr)
	}
	return host, port, nil
}

// joinLoop calls at Join's addresses until a member answers, and again at those that are lost.
func (n *Node) joinLoop() {
	pause := backoff{next: 100 * time.Millisecond, limit: 5 * time.Second}
	for n.ctx.Err() == nil {
		lost, others := n.lostAddrs()
		if len(lost) > 0 {
			if _, err := n.gossip.Join(lost); err != nil && others == 0 {
				n.logger.Debug("no other member answers yet", "error", err)
			}
		}
		if _, others = n.lostAddrs(); others > 0 {
			pause = backoff{next: rejoinEvery, limit: rejoinEvery}
		} else if pause.next == rejoinEvery {
			pause = backoff{next: 100 * time.Millisecond, limit: 5 * time.Second}
		}
		// Not cut short by changes: this is a matter of seconds.
		pause.wait(n.ctx, nil)
	}
}

// lostAddrs returns the gossip addresses that no live member has, and how many live members
// there are besides this one.
func (n *Node) lostAddrs() (lost []string, others int) {
	live := make(map[string]bool)
	for _, m := range n.roster.list() {
		switch {
		case m.alive:
			live[m.gossipAddr] = true
			if m.name != n.cfg.Name {
				others++
			}
		default:
			lost = append(lost, m.gossipAddr)
		}
	}
	for _, addr := range slices.Concat(n.cfg.Join, n.cfg.known) {
		if !live[addr] && !slices.Contains(lost, addr) {
			lost = append(lost, addr)
		}
	}
	return lost, others
}

// tellGossip spreads this node's description after it changed.
func (n *Node) tellGossip(ctx context.Context) {
	if ctx.Err() == nil {
		if err := n.gossip.UpdateNode(tellWait); err != nil {
			n.logger.Debug("other members may learn late that this node has changed", "error", err)
		}
	}
}

func (n *Node) stopGossip(polite bool) {
	if n.gossip == nil {
		return
	}
	if polite {
		if err := n.gossip.Leave(leaveWait); err != nil {
			n.logger.Debug("other members may not know that this node left", "error", err)
		}
	}
	if err := n.gossip.Shutdown(); err != nil {
		n.logger.Warn("gossip did not stop cleanly", "error", err)
	}
}
