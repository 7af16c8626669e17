package routes

import (
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// gatherSize is how much of a watch is gathered before it is sent, flushed or not.
const gatherSize = 64 << 10

// gathered has a watch's events written as a whole. Upstream writes the length of one, and then the
// event; what is just longer than a buffer of net/http's, which pods are, then takes two frames, two
// TLS records and two system calls, for each of a thousand watchers.
type gathered struct {
	http.ResponseWriter
	buf *[]byte // of gatherBuffers while there is something in it, or nil: most watches are quiet
}

var _ http.Flusher = (*gathered)(nil)

var gatherBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Write implements io.Writer.
func (g *gathered) Write(p []byte) (int, error) {
	if g.buf == nil {
		g.buf = gatherBuffers.Get().(*[]byte)
	}
	*g.buf = append(*g.buf, p...)
	if len(*g.buf) < gatherSize {
		return len(p), nil
	}
	return len(p), g.send()
}

// send writes what was gathered.
func (g *gathered) send() error {
	if g.buf == nil {
		return nil
	}
	_, err := g.ResponseWriter.Write(*g.buf)
	if cap(*g.buf) <= 2*gatherSize {
		*g.buf = (*g.buf)[:0]
		gatherBuffers.Put(g.buf)
	}
	g.buf = nil
	return err
}

// Flush implements http.Flusher. Who cannot be written to is noticed by the handler's context.
func (g *gathered) Flush() {
	if g.send() == nil {
		g.ResponseWriter.(http.Flusher).Flush()
	}
}

// serveLists serves a GET that is a list or a watch; always says that it is a watch.
func (t *target) serveLists(lister rest.Lister, watcher rest.Watcher, always bool, w http.ResponseWriter, r *http.Request) {
	handler := handlers.ListResource(lister, watcher, t.scope, always, t.MinWatchTimeout)
	info, ok := request.RequestInfoFrom(r.Context())
	_, flushes := w.(http.Flusher)
	if !ok || info.Verb != "watch" || !flushes || r.Header.Get("Upgrade") != "" { // that takes the connection over
		handler(w, r)
		return
	}
	g := &gathered{ResponseWriter: w}
	handler(g, r)
	_ = g.send() // nobody is left to tell
}
