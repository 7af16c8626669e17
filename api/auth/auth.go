// Package auth says who a request comes from and what they may do.
//
// Who: a client certificate of the cluster's CA (common name and organizations
// are user and groups), or a bearer token from a file in upstream's format.
// Who sends neither is anonymous, on the few paths that are public; elsewhere
// that is refused, as are wrong credentials everywhere.
//
// What: the group system:masters may do everything; whoever is authenticated may
// ask what there is; others nothing yet.
package auth

import (
	"crypto/x509"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	clientcert "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
)

// NewAuthenticator accepts client certificates that clientCAs signed and, if
// tokenFile is not empty, the tokens listed there: token,user,uid,"group,...".
func NewAuthenticator(clientCAs *x509.CertPool, tokenFile string) (authenticator.Request, error) {
	verify := func() (x509.VerifyOptions, bool) {
		opts := clientcert.DefaultVerifyOptions()
		opts.Roots = clientCAs
		return opts, true
	}
	certificates := clientcert.NewDynamic(verify, clientcert.CommonNameUserConversion)
	methods := []authenticator.Request{newRemembering(certificates)}
	if tokenFile != "" {
		tokens, err := tokenfile.NewCSV(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read token file %s: %w; each line is token,user,uid[,\"group,...\"]", tokenFile, err)
		}
		methods = append(methods, bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
	}
	known := group.NewAuthenticatedGroupAdder(union.New(methods...))
	return union.NewFailOnError(known, anonymous.NewAuthenticator(publicConditions())), nil
}

// Self authenticates every request as this server's own. It is for requests
// that never leave the process.
func Self() authenticator.Request {
	return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{
			Name:   user.APIServerUser,
			Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
		}}, true, nil
	})
}
