// Package proxy sends TCP connections on to one of several servers: the first
// that is well. It knows nothing of what is said on them; clients speak TLS with
// the server itself, and their credentials pass through unseen.
//
// A server is well while the check of it succeeds. New connections go to one
// that is; one that does not take a connection is passed over at once. When a
// server has failed two checks in a row and another is well, its connections are
// closed, so that clients come back and go there: a machine that is gone, paused
// or cut off closes none itself.
//
// Goroutines: one that accepts, one for each server's checks, one that asks for
// the list of servers, and two for each connection.
package proxy
