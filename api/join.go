package api

import (
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/api/auth"
	"kontiki/cluster"
	"kontiki/cluster/pki"
)

// TokensPath makes join tokens, JoinPath takes them.
const (
	TokensPath = ownPrefix + "/tokens"
	JoinPath   = auth.JoinPath
)

// TokenRequest asks for a token that is good for TTL.
type TokenRequest struct {
	TTL metav1.Duration `json:"ttl"`
}

// JoinToken is what a new node joins with, see pki.Token.
type JoinToken struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// JoinRequest is what a new node says of itself.
type JoinRequest struct {
	Token      string `json:"token"`
	Name       string `json:"name"`
	PeerAddr   string `json:"peerAddr"`
	GossipAddr string `json:"gossipAddr"`
}

// JoinResponse is what a new node needs to become one of the cluster.
type JoinResponse struct {
	Cluster pki.Bundle `json:"cluster"`
	Peers   []string   `json:"peers"` // gossip addresses
}

func (s *Server) createToken(_ http.ResponseWriter, r *http.Request) (any, error) {
	var request TokenRequest
	if err := readJSON(r, &request); err != nil {
		return nil, err
	}
	text, expires, err := s.Root.NewToken(request.TTL.Duration)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return JoinToken{Token: text, Expires: expires}, nil
}

// admitNode lets a node in that has a good token. It changes nothing: what makes
// the node a member is that it comes to gossip and the leader adds it.
func (s *Server) admitNode(_ http.ResponseWriter, r *http.Request) (any, error) {
	var request JoinRequest
	if err := readJSON(r, &request); err != nil {
		return nil, err
	}
	if err := s.Root.CheckToken(request.Token); err != nil {
		s.Logger.Warn("refused a node's token", "name", request.Name, "from", r.RemoteAddr, "error", err)
		return nil, apierrors.NewUnauthorized(err.Error())
	}
	members := s.Node.Members()
	if err := s.checkJoiner(r, request, members); err != nil {
		s.Logger.Warn("refused a node", "name", request.Name, "from", r.RemoteAddr, "error", err)
		return nil, err
	}
	bundle, err := s.Root.Bundle()
	if err != nil {
		return nil, err
	}
	response := JoinResponse{Cluster: bundle}
	for _, m := range members {
		if m.Alive {
			response.Peers = append(response.Peers, m.GossipAddr)
		}
	}
	s.Logger.Info("let a node in", "name", request.Name, "from", r.RemoteAddr)
	return response, nil
}

func (s *Server) checkJoiner(r *http.Request, request JoinRequest, members []cluster.Member) error {
	if err := pki.ValidateName(request.Name); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	for _, m := range members {
		if m.Name != request.Name {
			continue
		}
		if m.Alive {
			return conflict("a node called %s is running at %s: choose another --name; if it was this machine, run `kontiki members remove %s` against another node first", m.Name, m.PeerAddr, m.Name)
		}
		if m.Role == cluster.RoleVoter {
			return conflict("the cluster knows %s as a voter, but this node has none of its data: run `kontiki members remove %s` against another node, then start this one again", m.Name, m.Name)
		}
	}
	return s.checkReachable(r, request, members)
}

// checkReachable finds nodes that could talk to this API and never to each
// other: one of them listens for nodes on loopback, and they are on two machines.
func (s *Server) checkReachable(r *http.Request, request JoinRequest, members []cluster.Member) error {
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return err
	}
	for flag, addr := range map[string]string{"--peer-addr": request.PeerAddr, "--gossip-addr": request.GossipAddr} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("%s %q is not host:port", flag, addr))
		}
		if isLoopback(host) && !isLoopback(remote) {
			return conflict("%s %s is loopback, where other nodes cannot reach it: give %s an address of this machine", flag, addr, flag)
		}
	}
	for _, m := range members {
		if host, _, err := net.SplitHostPort(m.PeerAddr); m.Name == s.Name && err == nil && isLoopback(host) && !isLoopback(remote) {
			return conflict("node %s listens for other nodes on %s only, which is loopback: start it again with --api-addr or --peer-addr set to an address that other machines reach", m.Name, m.PeerAddr)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// conflict refuses what would be right at another time or under another name.
func conflict(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict,
		Reason: metav1.StatusReasonConflict, Message: fmt.Sprintf(format, args...),
	}}
}
