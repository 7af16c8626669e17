package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kontiki/scripts/servers"
)

const (
	floorName = "floor"
	// floorCommand, as the only argument, makes this program the floor's process.
	floorCommand = "serve-floor"
	// floorQueue is how many events may wait for a watcher, more than one phase makes.
	floorQueue = 4096
	floorStart = 10 * time.Second
)

// A floor takes what any server on net/http takes at least: it is that package's HTTP/2 over TLS, sends the
// bytes that Kontiki would send, and does nothing else. It neither knows who asks nor looks at what is asked,
// and has a change wait for nothing.
type floor struct {
	mu      sync.Mutex
	answers map[string][]byte        // guarded by mu
	watches map[chan []byte]struct{} // guarded by mu
}

// place is where answers of a kind and a content type stand: the list, or any pod.
func place(r *http.Request, media string) string {
	return fmt.Sprint(strings.HasSuffix(r.URL.Path, podsPath), media)
}

// ServeHTTP implements http.Handler. What is PUT is the answer to each GET of its kind from then on.
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return // the client has gone
	case r.Method == http.MethodPut:
		f.mu.Lock()
		f.answers[place(r, r.Header.Get("Content-Type"))] = body
		f.mu.Unlock()
		return
	case r.URL.Query().Has("watch"):
		f.watch(w, r)
		return
	}
	f.mu.Lock()
	answer := f.answers[place(r, r.Header.Get("Accept"))]
	f.mu.Unlock()
	if r.Method == http.MethodPatch {
		f.publish(answer, body)
	}
	w.Header().Set("Content-Type", r.Header.Get("Accept"))
	_, _ = w.Write(answer) // a client that has gone needs none
}

// publish sends all watchers an event as long as the object and what was changed.
func (f *floor) publish(object, change []byte) {
	event := binary.BigEndian.AppendUint32(nil, uint32(len(object)+len(change)))
	event = append(append(event, object...), change...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.watches {
		select {
		case events <- event:
		default: // lags by more than there are; who waits for all its events says so
		}
	}
}

// watch sends events, those that wait together.
func (f *floor) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, floorQueue)
	f.mu.Lock()
	f.watches[events] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watches, events)
		f.mu.Unlock()
	}()
	controller := http.NewResponseController(w)
	for err := controller.Flush(); err == nil; {
		select {
		case event := <-events:
			_, err = w.Write(event)
			if err == nil && len(events) == 0 {
				err = controller.Flush()
			}
		case <-r.Context().Done():
			return
		}
	}
}

// newFloor is a floor that serves.
func newFloor() servers.Endpoint {
	server := httptest.NewUnstartedServer(&floor{answers: map[string][]byte{}, watches: map[chan []byte]struct{}{}})
	server.EnableHTTP2 = true
	server.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return servers.Endpoint{Name: floorName, URL: server.URL, CA: ca}
}

// serveFloor says on out where it listens, and serves until the process ends.
func serveFloor(out io.Writer) error {
	if err := json.NewEncoder(out).Encode(newFloor()); err != nil {
		return err
	}
	select {} // the signal that ends the process needs no handler
}

// startFloor starts a floor, which has no answers yet.
func startFloor(ctx context.Context, dir string) (*servers.Group, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &servers.Group{Name: floorName}
	if _, err := g.Start(dir, floorName, self, floorCommand); err != nil {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, floorStart)
	defer cancel()
	return g, servers.Until(ctx, func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(dir, floorName+".log"))
		var e servers.Endpoint
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			return fmt.Errorf("it says %q, not where it listens: %w", text, err)
		}
		g.Endpoints = []servers.Endpoint{e}
		return nil
	})
}

// copyAnswers gives a floor what another server answers.
func (t *target) copyAnswers(ctx context.Context, from *target) error {
	for _, what := range []struct{ path, media string }{
		{podPath(0), protobufMedia}, {podsPath, protobufMedia}, {podsPath, jsonMedia},
	} {
		body, err := from.clients[0].Get().AbsPath(what.path).SetHeader("Accept", what.media).Do(ctx).Raw()
		if err == nil {
			err = t.clients[0].Put().AbsPath(what.path).SetHeader("Content-Type", what.media).Body(body).Do(ctx).Error()
		}
		if err != nil {
			return fmt.Errorf("copy the answer to %s: %w", what.path, err)
		}
	}
	t.filled = true
	return nil
}
