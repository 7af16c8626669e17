package cluster

// ForceElection makes this node a candidate at once.
func (n *Node) ForceElection() { n.standNow() }

// ProtocolMismatch is what dialing a node makes of an error.
var ProtocolMismatch = protocolMismatch
