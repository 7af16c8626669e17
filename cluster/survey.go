package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Survey is Members with what each of them answers when asked now, over TCP: gossip may be
// silent while a node serves, and the reverse. It takes at most Config.VerifyTimeout.
func (n *Node) Survey(ctx context.Context) []Member {
	members := n.Members()
	addrs := make(map[string]string)
	for _, m := range members {
		addrs[m.Name] = m.PeerAddr
	}
	states := n.askMembers(ctx, n.cfg.VerifyTimeout, addrs)
	var newest uint64
	for _, state := range states {
		newest = max(newest, state.applied) // raft's indexes count otherwise, see Status
	}
	for i := range members {
		state, ok := states[members[i].Name]
		if !ok {
			members[i].LastContact = -1
			continue
		}
		members[i].Reachable = true
		members[i].Applied, members[i].Lag = state.applied, newest-state.applied
		members[i].LastContact = int64(state.contact / time.Millisecond)
		if state.contact < 0 {
			members[i].LastContact = -1
		}
		members[i].Version = state.version
		members[i].WantsVote = !state.nonVoter
	}
	return members
}

// askMembers asks all at once and returns those that answered in time, this node included.
func (n *Node) askMembers(ctx context.Context, wait time.Duration, addrs map[string]string) map[string]memberState {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var (
		mu     sync.Mutex
		states = make(map[string]memberState) // guarded by mu
		wg     sync.WaitGroup
	)
	for name, addr := range addrs {
		wg.Go(func() {
			state, err := n.askMember(ctx, name, addr)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			states[name] = state
		})
	}
	wg.Wait()
	return states
}

// askServers is askMembers for the nodes of the raft configuration.
func (n *Node) askServers(ctx context.Context, wait time.Duration) map[string]memberState {
	addrs := make(map[string]string)
	for _, server := range n.servers() {
		addr, _ := n.peerAddrOf(server.ID)
		addrs[string(server.ID)] = string(addr)
	}
	return n.askMembers(ctx, wait, addrs)
}

// askMember asks a node how it is. One that does not know the question is asked the older one.
func (n *Node) askMember(ctx context.Context, name, addr string) (memberState, error) {
	if name == n.cfg.Name {
		return n.memberStateFor(name), nil
	}
	reply, err := n.exchange(ctx, name, addr, askMember, nil)
	if err == nil {
		return decodeMemberState(reply.payload)
	}
	if reply.kind != replyInvalid {
		return memberState{}, err
	}
	if reply, err = n.exchange(ctx, name, addr, askStatus, nil); err != nil {
		return memberState{}, err
	}
	status, err := decodePeerStatus(reply.payload)
	return memberState{peerStatus: status, contact: -1, founding: n.foundings.first}, err
}

// memberStateFor is this node's state as told to peer.
func (n *Node) memberStateFor(peer string) memberState {
	return memberState{
		peerStatus: n.peerStatusFor(peer),
		nonVoter:   n.nodeFile.nonVoter(),
		term:       n.raft.CurrentTerm(),
		contact:    n.lastContact(),
		founding:   n.nodeFile.settled(),
		version:    n.cfg.Version,
	}
}

// successor is the voter to hand over to: of those that answer at once, the one that has
// applied most. Raft's own choice does not ask whether the node is there.
func (n *Node) successor(ctx context.Context) (raft.Server, bool) {
	states := n.askServers(ctx, n.cfg.HeartbeatTimeout/2)
	voters, _ := n.otherVoters()
	var best raft.Server
	for _, voter := range voters {
		state, ok := states[string(voter.ID)]
		if ok && state.hasState && (best.ID == "" || state.applied > states[string(best.ID)].applied) {
			best = voter
		}
	}
	return best, best.ID != ""
}
