// Package clustertest runs several nodes in one process, for tests: real TCP and TLS on
// loopback ports that the kernel picks, real bbolt files in the test's temporary directory,
// the real gossip, and timeouts of milliseconds. KONTIKI_TEST_SLOW=n multiplies them.
//
// Waiting is by Until, which says on failure what it was still waiting for. Logs are kept
// and shown when the test fails. The nodes stop with the test.
package clustertest
