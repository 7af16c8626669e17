package api

import (
	"encoding/hex"
	"errors"
	"net/http"
)

// DigestPath answers what this node's state is, in one line.
const DigestPath = ownPrefix + "/digest"

// Digest is a node's state in one line. Nodes at one index have one digest; if
// not, they have diverged, which must never happen.
type Digest struct {
	Name   string `json:"name"` // of the node that answers
	Index  uint64 `json:"index"`
	Digest string `json:"digest"`
	Term   uint64 `json:"term"`
	State  string `json:"state"`  // of the node in that term: Follower, Candidate, Leader or Shutdown
	Leader string `json:"leader"` // empty: none known
}

// termTries bounds the wait for two readings of the status in one term.
const termTries = 100

// digest reads the whole state, which takes about a second for a million
// objects; writes and other reads go on meanwhile.
func (s *Server) digest(http.ResponseWriter, *http.Request) (any, error) {
	view := s.Backend.State.View()
	sum := view.Digest()
	// What is read between two equal terms is true of that term.
	before := s.Node.Status()
	for range termTries {
		status := s.Node.Status()
		if status.Term == before.Term {
			return Digest{
				Name: s.Name, Index: view.Index(), Digest: hex.EncodeToString(sum[:]),
				Term: status.Term, State: status.State, Leader: status.Leader,
			}, nil
		}
		before = status
	}
	return nil, errors.New("the raft term changes faster than it can be read")
}
