package proxy

import (
	"net"
	"slices"
	"sync"
)

// failuresToClose is how many checks in a row must fail before connections are
// closed: one may be lost on the way.
const failuresToClose = 2

// servers is the list of servers with what is known of them.
type servers struct {
	mu  sync.Mutex
	all []*server // guarded by mu; in the order of preference
}

// server is one of them; its fields are guarded by servers.mu.
type server struct {
	address  string
	failures int // in a row
	conns    map[net.Conn]struct{}
	stop     func() // ends its checks
}

// set makes the list what addresses says, and returns the servers that are new.
// Those that stay keep their place, and connections to those that go stay open.
func (s *servers) set(addresses []string) (added []*server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(known *server) bool {
		gone := !slices.Contains(addresses, known.address)
		if gone {
			known.stop()
		}
		return gone
	})
	for _, address := range addresses {
		if slices.ContainsFunc(s.all, func(known *server) bool { return known.address == address }) {
			continue
		}
		fresh := &server{address: address, conns: make(map[net.Conn]struct{}), stop: func() {}}
		s.all, added = append(s.all, fresh), append(added, fresh)
	}
	return added
}

// candidates are all servers, those that are well first.
func (s *servers) candidates() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	candidates := slices.Clone(s.all)
	slices.SortStableFunc(candidates, func(a, b *server) int { return min(a.failures, 1) - min(b.failures, 1) })
	return candidates
}

// addresses lists the servers.
func (s *servers) addresses() (addresses []string) {
	for _, candidate := range s.candidates() {
		addresses = append(addresses, candidate.address)
	}
	return addresses
}

// note keeps the outcome of a check or of a dial, says whether it is news, and
// closes the server's connections if they are better off elsewhere.
func (s *servers) note(of *server, failed bool) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := of.failures
	of.failures++
	if !failed {
		of.failures = 0
	}
	elsewhere := slices.ContainsFunc(s.all, func(other *server) bool { return other != of && other.failures == 0 })
	if of.failures >= failuresToClose && elsewhere {
		for conn := range of.conns {
			conn.Close()
		}
	}
	return (before == 0) != (of.failures == 0)
}

func (s *servers) join(of *server, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.conns[conn] = struct{}{}
}

func (s *servers) leave(of *server, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(of.conns, conn)
}
