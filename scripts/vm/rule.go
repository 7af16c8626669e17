package vm

import (
	"fmt"
	"time"
)

// Protocol is the number of a transport protocol in an IP packet.
type Protocol uint8

// The protocols that rules can tell apart; AnyProtocol matches all.
const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
)

// Rule says what happens to packets from one machine to another. Of a pair's rules in a layer
// the first that matches decides; no rule at all passes everything at once.
type Rule struct {
	// Protocol and Port narrow what the rule matches; zero matches all. A port matches as
	// source or as destination, so that one rule covers a service's requests or its answers.
	Protocol Protocol
	Port     uint16

	// Drop swallows, as a broken cable does. Reset answers TCP with a reset to both ends, as
	// a stateful firewall that forgot the connection does, and drops the rest.
	Drop, Reset bool

	// Loss drops this share of packets, 0 to 1. Delay, give or take Jitter, holds the others
	// back; they stay in order.
	Loss          float64
	Delay, Jitter time.Duration
}

func (r Rule) matches(p packet) bool {
	return (r.Protocol == AnyProtocol || r.Protocol == p.protocol) &&
		(r.Port == 0 || r.Port == p.sourcePort || r.Port == p.targetPort)
}

// and is what happens to a packet that two rules of different layers match.
func (r Rule) and(o Rule) Rule {
	return Rule{
		Drop: r.Drop || o.Drop, Reset: r.Reset || o.Reset,
		Loss: 1 - (1-r.Loss)*(1-o.Loss), Delay: r.Delay + o.Delay, Jitter: r.Jitter + o.Jitter,
	}
}

// String names the rule for logs.
func (r Rule) String() string {
	what := "pass"
	switch {
	case r.Drop:
		what = "drop"
	case r.Reset:
		what = "reset"
	case r.Loss > 0 || r.Delay > 0:
		what = fmt.Sprintf("loss %.0f%%, delay %s±%s", r.Loss*100, r.Delay, r.Jitter)
	}
	if r.Protocol != AnyProtocol || r.Port != 0 {
		what += fmt.Sprintf(" of protocol %d port %d", r.Protocol, r.Port)
	}
	return what
}
