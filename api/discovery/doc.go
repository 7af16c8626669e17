// Package discovery answers what there is to ask for: /api, /apis, and the
// documents of /openapi/v2 and /openapi/v3.
//
// Upstream writes all of these as a by-product of registering its go-restful
// routes. So the same storage that package routes mounts on mux is here
// installed once more with upstream's installer, in a container that serves
// nothing but these documents. They are therefore upstream's to the letter, and
// a test compares the container's paths with those on mux.
//
// Making them takes longer than starting a node, and most nodes are never asked
// for some of them; each part is made when first asked for.
package discovery
