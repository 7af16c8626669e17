package api

import (
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/api/metrics"
)

// CertificatesPath answers which certificates a node has, and renews them.
// ClientCertificatesPath signs new ones for clients.
const (
	CertificatesPath       = ownPrefix + "/certificates"
	ClientCertificatesPath = ownPrefix + "/clientcertificates"
)

// Certificates is what the server asks of who keeps its node's certificates.
type Certificates interface {
	Status() ([]Certificate, error)
	Renew() error
}

// Certificate is one that a node keeps.
type Certificate struct {
	What      string    `json:"what"` // ca, node or admin
	Subject   string    `json:"subject"`
	File      string    `json:"file"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// RenewAt is when the node renews it, nil for one that is never renewed.
	RenewAt *time.Time `json:"renewAt,omitempty"`
}

// NodeCertificates is the answer of CertificatesPath.
type NodeCertificates struct {
	Node         string        `json:"node"`
	Certificates []Certificate `json:"certificates"`
}

// ClientCertificateRequest has a certificate request, PEM-encoded, whose common
// name is the user and whose organizations are the groups.
type ClientCertificateRequest struct {
	Request string          `json:"request"`
	TTL     metav1.Duration `json:"ttl"`
}

// ClientCertificate is PEM-encoded, and so is the CA of the servers.
type ClientCertificate struct {
	Certificate string `json:"certificate"`
	CA          string `json:"ca"`
}

// expiries is what the metrics and the status of all members show of them.
func (s *Server) expiries() (all []metrics.Certificate) {
	list, err := s.Certificates.Status()
	if err != nil {
		s.Logger.Debug("cannot read the certificates", "error", err)
	}
	for _, c := range list {
		all = append(all, metrics.Certificate{Name: c.What, NotAfter: c.NotAfter})
	}
	return all
}

func (s *Server) listCertificates(http.ResponseWriter, *http.Request) (any, error) {
	list, err := s.Certificates.Status()
	return NodeCertificates{Node: s.Name, Certificates: list}, err
}

func (s *Server) renewCertificates(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := s.Certificates.Renew(); err != nil {
		return nil, err
	}
	return s.listCertificates(w, r)
}

func (s *Server) signClient(_ http.ResponseWriter, r *http.Request) (any, error) {
	var request ClientCertificateRequest
	if err := readJSON(r, &request); err != nil {
		return nil, err
	}
	cert, err := s.Root.SignClient([]byte(request.Request), request.TTL.Duration)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return ClientCertificate{Certificate: string(cert), CA: string(s.Root.CAPEM())}, nil
}
