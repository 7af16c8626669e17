package auth

import (
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

const (
	// rememberFor is how long a verified client certificate is taken as verified:
	// short enough that a change of what is trusted counts at once.
	rememberFor = 10 * time.Second
	// maxRemembered bounds how many certificates are remembered.
	maxRemembered = 4096
)

// remembering asks an authenticator of client certificates once per certificate
// and rememberFor. To check its signature takes as long as three reads of an
// object, and a client sends the same one with every request.
type remembering struct {
	authenticator.Request
	known *cache.LRUExpireCache // *x509.Certificate -> *authenticator.Response
}

func newRemembering(certificates authenticator.Request) remembering {
	return remembering{certificates, cache.NewLRUExpireCache(maxRemembered)}
}

// AuthenticateRequest implements authenticator.Request. The certificate itself is
// the key, by address: it is that of the handshake, and nothing changes it.
func (r remembering) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	certificate := req.TLS.PeerCertificates[0]
	if known, ok := r.known.Get(certificate); ok && valid(certificate, time.Now()) {
		return known.(*authenticator.Response), true, nil
	}
	response, ok, err := r.Request.AuthenticateRequest(req)
	if ok && err == nil {
		r.known.Add(certificate, response, rememberFor)
	}
	return response, ok, err
}

func valid(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter)
}
