// Package pki is the identity of a Kontiki cluster and of its nodes.
//
// A cluster is one directory with three files: ca.crt, ca.key and gossip.key. Whoever
// holds it can add a node; its certificate's hash is the cluster's ID. EnsureCluster makes
// that directory exactly once, also when several processes race for it.
//
// From it come the certificates, all ECDSA P-256:
//
//   - node certificates (server and client authentication), kept in the node's own data
//     directory and issued again when they near their end or when the node's addresses
//     change. A node is recognised by a DNS name below NodeDomain, which no client
//     certificate carries: an administrator's certificate comes from the same authority
//     and still does not open the peer port.
//   - client certificates (common name = user, organization = groups) for kubeconfigs.
//
// The package starts no goroutine and keeps no state.
package pki
