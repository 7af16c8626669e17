package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"
)

const (
	knownFileName = "peers.json"

	// maxKnown is many times what a cluster has.
	maxKnown = 64
)

// knownPeers is DATA/peers.json: where this node last knew others to gossip. With it a
// restart finds the cluster when the addresses it was first told are no more, and a node
// that has joined and has no data yet knows that it must not found a cluster alone.
type knownPeers struct {
	Gossip []string `json:"gossip"`
}

// KnownPeers returns the gossip addresses that the node with this data directory remembers.
func KnownPeers(dataDir string) ([]string, error) {
	path := filepath.Join(dataDir, knownFileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the data directory: %w", err)
	}
	var known knownPeers
	if err := json.Unmarshal(data, &known); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): remove it and give --peers with the gossip addresses of other nodes", path, err)
	}
	return known.Gossip, nil
}

// RememberPeers has the node with this data directory find these gossip addresses at its next start.
func RememberPeers(dataDir string, gossip []string) error {
	if len(gossip) > maxKnown {
		gossip = gossip[:maxKnown]
	}
	data, err := json.MarshalIndent(knownPeers{Gossip: gossip}, "", "  ")
	if err != nil {
		return err
	}
	err = errors.Join(os.MkdirAll(dataDir, 0o755), replaceFile(filepath.Join(dataDir, knownFileName), append(data, '\n')))
	if err != nil {
		return fmt.Errorf("cannot write the data directory: %w", err)
	}
	return nil
}

// ForgetPeers undoes RememberPeers.
func ForgetPeers(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, knownFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rememberLoop keeps peers.json up to date.
func (n *Node) rememberLoop() {
	for {
		changed := n.members.C()
		if now := n.toRemember(); len(now) > 0 && !slices.Equal(now, n.known) {
			if err := RememberPeers(n.cfg.DataDir, now); err != nil {
				n.logger.Warn("a restart may not find the other nodes", "error", err)
			} else {
				n.known = now
			}
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			return
		}
	}
}

// toRemember is where the others are. One that is silent counts as long as it is in the
// configuration: it may come back before this node does.
func (n *Node) toRemember() (gossip []string) {
	for _, m := range n.roster.list() {
		_, known := n.server(raft.ServerID(m.name))
		if m.name != n.cfg.Name && (m.alive || known) {
			gossip = append(gossip, m.gossipAddr)
		}
	}
	return gossip
}
