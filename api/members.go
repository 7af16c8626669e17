package api

import (
	"errors"
	"net/http"

	"github.com/gorilla/mux"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/cluster"
)

// Where the commands that look at the members, and change them, send their requests.
const (
	// MembersPath answers who is in the cluster. Below it are the members by
	// name, for DELETE; "promote" and "demote" below those are for POST.
	MembersPath = ownPrefix + "/members"

	// TransferPath is for POST; the query parameter "to" names the next leader,
	// and may be missing.
	TransferPath = ownPrefix + "/transfer-leadership"
)

// Members is what this node knows of its cluster, and what the others answer it.
type Members struct {
	Name    string           `json:"name"`   // of the node that answers
	Leader  string           `json:"leader"` // empty: none known
	Members []cluster.Member `json:"members"`
}

// Done says what a change of the membership has done.
type Done struct {
	Message string `json:"message"`
}

func (s *Server) listMembers(_ http.ResponseWriter, r *http.Request) (any, error) {
	leader, _, _ := s.Node.Leader()
	return Members{Name: s.Name, Leader: leader, Members: s.Node.Survey(r.Context())}, nil
}

func (s *Server) removeMember(_ http.ResponseWriter, r *http.Request) (any, error) {
	return changed(s.Node.Remove(r.Context(), mux.Vars(r)["name"]))
}

func (s *Server) promoteMember(_ http.ResponseWriter, r *http.Request) (any, error) {
	return changed(s.Node.Promote(r.Context(), mux.Vars(r)["name"]))
}

func (s *Server) demoteMember(_ http.ResponseWriter, r *http.Request) (any, error) {
	return changed(s.Node.Demote(r.Context(), mux.Vars(r)["name"]))
}

func (s *Server) transferLeadership(_ http.ResponseWriter, r *http.Request) (any, error) {
	return changed(s.Node.TransferLeadership(r.Context(), r.URL.Query().Get("to")))
}

func changed(message string, err error) (any, error) {
	if err != nil {
		return nil, changeStatus(err)
	}
	return Done{message}, nil
}

// changeStatus is the answer to a change that was refused.
func changeStatus(err error) error {
	status := metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	for _, row := range []struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{cluster.ErrUnknownNode, http.StatusNotFound, metav1.StatusReasonNotFound},
		{cluster.ErrStillAlive, http.StatusConflict, metav1.StatusReasonConflict},
		{cluster.ErrQuorum, http.StatusConflict, metav1.StatusReasonConflict},
		{cluster.ErrNotVoter, http.StatusConflict, metav1.StatusReasonConflict},
		{cluster.ErrLeads, http.StatusConflict, metav1.StatusReasonConflict},
		{cluster.ErrUnreachable, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{cluster.ErrNotTransferred, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{cluster.ErrNoLeader, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{cluster.ErrUnknownOutcome, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
	} {
		if errors.Is(err, row.err) {
			status.Code, status.Reason = row.code, row.reason
			break
		}
	}
	return &apierrors.StatusError{ErrStatus: status}
}
