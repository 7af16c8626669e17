// Package api is the Kubernetes face of a node: an HTTP server that answers the
// Kubernetes API from the replicated state.
//
// A request passes the filters (filters.go), which find out what is asked, by
// whom, and whether they may, and then a router (server.go) that knows three
// kinds of paths: resources, which package routes mounts from the registry's
// table; documents about them, which package discovery makes; and a few of the
// node's own (health.go, members.go, status.go; metrics are package metrics).
//
// Below that everything is upstream's, down to package storage, which turns
// storage calls into proposals, views and cursors.
//
// Goroutines: one a connection and request (net/http), one a watch (storage),
// those of the loopback server, and the namespace informer of admission.
package api
