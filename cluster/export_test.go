package cluster

// ForceElection makes this node a candidate at once.
func (n *Node) ForceElection() { n.standNow() }
