// Package metrics is what a node tells Prometheus, and what it tells other nodes
// about itself for `kontiki status`.
//
// Requests are counted by a filter (requests.go), with the series of each kind
// of request looked up once and kept. Everything else is read when somebody asks
// (table.go): nothing on the way of a command or a watch is counted for it,
// except what package cluster times itself.
//
// METRICS.md is the table for operators; a test compares it with what is served.
//
// Goroutines: one, which notes the request counters every five seconds (rates.go).
package metrics
