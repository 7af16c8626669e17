package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
)

// alertNoProtocol is TLS's word for "none of your protocols" (RFC 7301).
const alertNoProtocol = tls.AlertError(120)

// protocolMismatch says in an operator's words why a node at the other end of a dial does
// not take part: it is of a release that speaks other versions of the protocols. The other
// side logs the same, see offered.
func protocolMismatch(protocol string, err error) error {
	var remote *net.OpError // crypto/tls does not export the alert in it, only its words
	if errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == alertNoProtocol.Error() {
		return fmt.Errorf("%w: it does not speak %s: update the older of the two nodes: %w", ErrVersion, protocol, err)
	}
	return err
}

// offered keeps what a client offers in its handshake, to tell a client of another version
// from other failures.
type offered struct{ protocols []string }

// listen returns config with an ear on the offer.
func (o *offered) listen(config *tls.Config) *tls.Config {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		o.protocols = hello.SupportedProtos
		return nil, nil
	}
	return config
}

// explain is protocolMismatch for the side that was dialed.
func (o *offered) explain(err error, known ...string) error {
	for _, protocol := range o.protocols {
		if slices.Contains(known, protocol) {
			return err
		}
	}
	if len(o.protocols) == 0 {
		return err
	}
	return fmt.Errorf("%w: it offers %q, this node speaks %q: update the older of the two nodes: %w", ErrVersion, o.protocols, known, err)
}
