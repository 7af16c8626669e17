// Package pki is the identity of a Kontiki cluster and of its nodes.
//
// A cluster is one directory with three files: ca.crt, ca.key and gossip.key; its
// certificate's hash is the cluster's ID. EnsureCluster makes that directory exactly once,
// also when several processes race for it. Every node holds a copy, so every node can sign
// for others and renew its own certificate without asking anybody; in turn, whoever reads
// the disk of one node has the cluster.
//
// A node that joins brings a token, which has the hash of the CA certificate and a signature
// that follows from the CA's key. By the hash it knows the cluster (Token.TLS), by the
// signature the cluster knows it (CheckToken). What it gets is the directory (Bundle), and
// it writes that as one or not at all (Adopt).
//
// From the CA come the certificates, all ECDSA P-256:
//
//   - node certificates (server and client authentication), kept in the node's own data
//     directory. A node is recognised by a DNS name below NodeDomain, which no client
//     certificate carries: an administrator's certificate comes from the same authority
//     and still does not open the peer port.
//   - client certificates (common name = user, organization = groups) for kubeconfigs.
//
// A node certificate is issued again when two thirds of its life are over (RenewAt) or when
// the node's addresses change; Identity.Replace puts it to use for new connections. The CA
// itself lives ten years, and nothing renews it.
//
// The package starts no goroutine; its only state is the certificate of an Identity.
package pki
