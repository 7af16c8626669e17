package cluster

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
)

// member is what gossip knows of a node.
type member struct {
	name       string
	gossipAddr string
	alive      bool
	memberMeta
}

// memberMeta travels in memberlist's node meta, which holds 512 bytes.
type memberMeta struct {
	peerAddr, apiAddr, version string
	expect                     int
	hasState, nonVoter         bool
	founding                   string // once it is settled, see founding.go
}

const (
	metaVersion  = 1
	metaHasState = 1 << 0
	metaNonVoter = 1 << 1
)

func (m memberMeta) append(dst []byte) []byte {
	var flags byte
	if m.hasState {
		flags |= metaHasState
	}
	if m.nonVoter {
		flags |= metaNonVoter
	}
	dst = append(dst, metaVersion, flags, byte(m.expect))
	for _, s := range []string{m.peerAddr, m.apiAddr, m.version, m.founding} {
		dst = appendString(dst, s)
	}
	return dst
}

func decodeMeta(b []byte) (memberMeta, error) {
	r := messageReader{b: b}
	if r.byte() != metaVersion {
		return memberMeta{}, errMessage
	}
	flags := r.byte()
	m := memberMeta{
		hasState: flags&metaHasState != 0,
		nonVoter: flags&metaNonVoter != 0,
		expect:   int(r.byte()),
		peerAddr: r.string(),
		apiAddr:  r.string(),
		version:  r.string(),
	}
	if r.err == nil && len(r.b) > 0 { // the first version ended here
		m.founding = r.string()
	}
	// A later version may append fields.
	return m, r.err
}

// roster is the list of members, kept by memberlist's callbacks. They run under
// memberlist's own lock, in its packet loop, and so do no more than write the map.
type roster struct {
	logger  hclog.Logger
	meta    func() memberMeta // of this node
	onEvent func()

	founding foundings

	mu        sync.Mutex
	members   map[string]member // guarded by mu
	strangers map[string]string // guarded by mu; members of other foundings that were logged
}

var (
	_ memberlist.Delegate         = (*roster)(nil)
	_ memberlist.EventDelegate    = (*roster)(nil)
	_ memberlist.AliveDelegate    = (*roster)(nil)
	_ memberlist.ConflictDelegate = (*roster)(nil)
)

// list returns all members of this cluster, by name; all of any, before this node has entered one.
func (r *roster) list() []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := slices.DeleteFunc(slices.Collect(maps.Values(r.members)), r.isStranger)
	slices.SortFunc(ours, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return ours
}

func (r *roster) get(name string) (member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.members[name]
	return m, ok && !r.isStranger(m)
}

func (r *roster) isStranger(m member) bool {
	ours := r.founding.settled()
	return ours != "" && m.founding != "" && m.founding != ours
}

// NotifyAlive implements memberlist.AliveDelegate: what a member of another founding says is
// ignored, lest it takes the place of one of ours that has its name. One that was let in
// before it had a founding may tell of it.
func (r *roster) NotifyAlive(node *memberlist.Node) error {
	meta, err := r.decode(node.Meta)
	if err != nil {
		return nil // note logs it
	}
	m := member{name: node.Name, memberMeta: meta}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isStranger(m) {
		return nil
	}
	if r.strangers[m.name] != m.founding && len(r.strangers) < maxWarned {
		r.strangers[m.name] = m.founding
		r.logger.Error("a node gossips that belongs to a cluster of the same certificate authority, but founded on its own: if it should be part of this one, stop it, empty its data directory, and start it with --join",
			"name", m.name, "addr", node.Address(), "founding", m.founding, "ours", r.founding.settled())
	}
	if known, ok := r.members[m.name]; ok && known.founding == "" && known.gossipAddr == node.Address() {
		return nil
	}
	return ErrOtherFounding
}

// decode reads a member's description. Who has data and says no founding knows none yet.
func (r *roster) decode(data []byte) (memberMeta, error) {
	meta, err := decodeMeta(data)
	if err == nil && meta.hasState && meta.founding == "" {
		meta.founding = r.founding.first
	}
	return meta, err
}

// NotifyJoin implements memberlist.EventDelegate.
func (r *roster) NotifyJoin(node *memberlist.Node) { r.note(node, true) }

// NotifyUpdate implements memberlist.EventDelegate.
func (r *roster) NotifyUpdate(node *memberlist.Node) { r.note(node, true) }

// NotifyLeave implements memberlist.EventDelegate. The member stays in the list: that it
// does not answer gossip is no reason to forget where it was.
func (r *roster) NotifyLeave(node *memberlist.Node) { r.note(node, false) }

func (r *roster) note(node *memberlist.Node, alive bool) {
	meta, err := r.decode(node.Meta)
	if err != nil {
		r.logger.Error("a member's description cannot be read", "name", node.Name, "error", err)
		return
	}
	r.mu.Lock()
	r.members[node.Name] = member{name: node.Name, gossipAddr: node.Address(), alive: alive, memberMeta: meta}
	r.mu.Unlock()
	r.onEvent()
}

// NotifyConflict implements memberlist.ConflictDelegate.
func (r *roster) NotifyConflict(existing, other *memberlist.Node) {
	r.logger.Error("two nodes have the same name, or one has moved before it was seen to be gone",
		"name", existing.Name, "known", existing.Address(), "other", other.Address())
}

// NodeMeta implements memberlist.Delegate.
func (r *roster) NodeMeta(int) []byte { return r.meta().append(nil) }

// NotifyMsg implements memberlist.Delegate: there are no user messages.
func (r *roster) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (r *roster) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (r *roster) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (r *roster) MergeRemoteState([]byte, bool) {}
