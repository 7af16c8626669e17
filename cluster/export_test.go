package cluster

import (
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
)

// ForceElection makes this node a candidate at once.
func (n *Node) ForceElection() { n.standNow() }

// ProtocolMismatch is what dialing a node makes of an error.
var ProtocolMismatch = protocolMismatch

// Deafen stops gossip alone, as a firewall for UDP and the gossip port does.
func (n *Node) Deafen() error { return n.gossip.Shutdown() }

// Ask asks the node called name at addr how it is.
func (n *Node) Ask(ctx context.Context, name, addr string) error {
	_, err := n.askMember(ctx, name, addr)
	return err
}

// Attested says whether this node takes asker's word for it that there was no later term.
func (n *Node) Attested(asker string, term uint64) bool {
	_, ok := n.attestedIndex(asker, binary.BigEndian.AppendUint64(nil, term))
	return ok
}

// Founding is the id under which this node's cluster was founded.
func (n *Node) Founding() string { return n.nodeFile.settled() }

// FirstFounding is the id of clusters that were founded before there were ids.
func (n *Node) FirstFounding() string { return n.foundings.first }

// Strangers returns the members of other foundings that this node has heard of in gossip.
func (n *Node) Strangers() []string {
	n.roster.mu.Lock()
	defer n.roster.mu.Unlock()
	return slices.Collect(maps.Keys(n.roster.strangers))
}

// Noise is n bytes that take n bytes on the disk, too, the same for the same seed.
func Noise(seed uint64, n int) []byte {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	data := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(data) // it never fails
	return data
}
