package api

import (
	"encoding/json"
	"net/http"

	"kontiki/cluster"
)

// MembersPath answers who is in the cluster.
const MembersPath = "/kontiki/v1/members"

// Members is what this node knows of its cluster.
type Members struct {
	Name    string           `json:"name"`   // of the node that answers
	Leader  string           `json:"leader"` // empty: none known
	Members []cluster.Member `json:"members"`
}

func (s *Server) serveMembers(w http.ResponseWriter, _ *http.Request) {
	leader, _, _ := s.Node.Leader()
	w.Header().Set("Content-Type", "application/json")
	answer := Members{Name: s.Name, Leader: leader, Members: s.Node.Members()}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.Logger.Debug("cannot send members", "error", err)
	}
}
