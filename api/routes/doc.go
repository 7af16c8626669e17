// Package routes turns what the registry table opens into gorilla/mux routes.
//
// A resource's storage says by the interfaces it implements which verbs it has;
// verbs.go is the table of those, a row per verb: the interface, the HTTP
// method, the path, and upstream's handler for it. Paths are exactly those of
// the Kubernetes API reference. mux picks the handler; the handler takes names
// from the RequestInfo that the filter chain has put in the context.
//
// Around upstream's handlers stands what they are spared: answers are sent as they
// are stored (answers.go), and managedFields are made by package fields (owners.go,
// create.go, update.go).
package routes
