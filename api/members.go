package api

import (
	"net/http"

	"kontiki/cluster"
)

// MembersPath answers who is in the cluster.
const MembersPath = ownPrefix + "/members"

// Members is what this node knows of its cluster.
type Members struct {
	Name    string           `json:"name"`   // of the node that answers
	Leader  string           `json:"leader"` // empty: none known
	Members []cluster.Member `json:"members"`
}

func (s *Server) listMembers(http.ResponseWriter, *http.Request) (any, error) {
	leader, _, _ := s.Node.Leader()
	return Members{Name: s.Name, Leader: leader, Members: s.Node.Members()}, nil
}
