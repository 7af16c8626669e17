// Package registry is the table of what Kontiki serves, a row per resource.
//
// A row names a group version, a resource, and the constructor of upstream's
// registry for it: strategies, defaulting, validation, subresources and printer
// columns all come from there. To serve a new kind is to add a row. Nothing
// else in Kontiki knows a kind by name.
//
// This package and its sibling openapi are the only ones that import
// k8s.io/kubernetes; the others see rest.Storage.
package registry
