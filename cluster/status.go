package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// Member is a node as this one sees it. Its JSON is what the API and the commands show.
type Member struct {
	Name       string `json:"name"`
	Role       Role   `json:"role"`
	Leader     bool   `json:"leader"`
	Alive      bool   `json:"alive"` // as gossip sees it
	PeerAddr   string `json:"peerAddr"`
	GossipAddr string `json:"gossipAddr"`
	APIAddr    string `json:"apiAddr"`
	Version    string `json:"version"`

	// From Survey only.
	Reachable   bool   `json:"reachable"`         // it answered; what follows is its answer
	Applied     uint64 `json:"appliedIndex"`      // seen by its readers
	Lag         uint64 `json:"lag"`               // behind the member whose readers see most
	LastContact int64  `json:"lastContactMillis"` // since it heard the leader; 0 on the leader, -1 for never
	WantsVote   bool   `json:"wantsVote"`
}

// Role is a node's place in the raft configuration.
type Role string

// The roles. A member has RoleNone until the leader has added it.
const (
	RoleVoter    Role = "voter"
	RoleNonVoter Role = "nonvoter"
	RoleNone     Role = "none"
)

// Status is this node's view of itself.
type Status struct {
	Name         string
	State        string // Follower, Candidate, Leader or Shutdown
	Leader       string // name; empty if none is known
	Presiding    bool   // this node leads and its leader's functions run
	Term         uint64
	LastIndex    uint64 // in the log
	CommitIndex  uint64
	AppliedIndex uint64        // seen by readers: the FSM's. After a restore or a recovery it is ahead of raft's, the three above
	LastContact  time.Duration // since the leader was heard; 0 on the leader, -1 for never
}

// Status reports how this node is.
func (n *Node) Status() Status {
	return Status{
		Name:         n.cfg.Name,
		State:        n.raft.State().String(),
		Leader:       string(n.leaderID()),
		Presiding:    n.presiding() != nil,
		Term:         n.raft.CurrentTerm(),
		LastIndex:    n.raft.LastIndex(),
		CommitIndex:  n.raft.CommitIndex(),
		AppliedIndex: n.machine.Index(),
		LastContact:  n.lastContact(),
	}
}

func (n *Node) lastContact() time.Duration {
	if n.raft.State() == raft.Leader {
		return 0
	}
	last := n.raft.LastContact()
	if last.IsZero() {
		return -1
	}
	return time.Since(last)
}

// Silence tells whether this node knows of no leader, and so of no quorum, and for how long it
// has heard of none; -1 if never. A leader that loses its majority resigns and is then one of these.
func (n *Node) Silence() (since time.Duration, silent bool) {
	if n.leaderID() != "" {
		return 0, false
	}
	return n.lastContact(), true
}

// Leader returns the current leader's name and the API address that it advertises, which is
// empty if gossip has not brought it yet.
func (n *Node) Leader() (name, apiAddr string, ok bool) {
	id := n.leaderID()
	if id == "" {
		return "", "", false
	}
	m, _ := n.roster.get(string(id))
	return string(id), m.apiAddr, true
}

// Members returns the nodes of the raft configuration and those that gossip shows alive, by name.
func (n *Node) Members() []Member {
	leader := n.leaderID()
	roles := make(map[string]raft.Server)
	for _, server := range n.servers() {
		roles[string(server.ID)] = server
	}
	var members []Member
	for _, m := range n.roster.list() {
		if _, known := roles[m.name]; !known && !m.alive {
			continue // removed, or gone before it was added
		}
		members = append(members, Member{
			Name: m.name, Role: role(roles, m.name), Leader: m.name == string(leader), Alive: m.alive,
			PeerAddr: m.peerAddr, GossipAddr: m.gossipAddr, APIAddr: m.apiAddr, Version: m.version,
		})
		delete(roles, m.name)
	}
	for name, server := range roles { // known to raft, not to gossip
		members = append(members, Member{Name: name, Role: roleOf(server), Leader: name == string(leader), PeerAddr: string(server.Address)})
	}
	sortMembers(members)
	return members
}

func role(roles map[string]raft.Server, name string) Role {
	if server, ok := roles[name]; ok {
		return roleOf(server)
	}
	return RoleNone
}

func roleOf(server raft.Server) Role {
	if server.Suffrage == raft.Voter {
		return RoleVoter
	}
	return RoleNonVoter
}

// leaderID is the leader that raft knows, empty if none.
func (n *Node) leaderID() raft.ServerID {
	_, id := n.raft.LeaderWithID()
	return id
}

// peerAddrOf is where to dial a node: where gossip last saw it, else where the raft
// configuration has it.
func (n *Node) peerAddrOf(id raft.ServerID) (raft.ServerAddress, bool) {
	if m, ok := n.roster.get(string(id)); ok && m.peerAddr != "" {
		return raft.ServerAddress(m.peerAddr), true
	}
	if n.started.Load() == nil {
		return "", false
	}
	server, ok := n.server(id)
	return server.Address, ok
}
