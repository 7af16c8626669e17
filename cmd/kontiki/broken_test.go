package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontiki/scripts/chaos/check"
	"kontiki/scripts/chaos/history"
)

// brokenEvery: of so many requests or events of a kind, one is answered wrongly.
const brokenEvery = 5

// enoughWrong is how many wrong answers there are before the checkers must have seen one: some of them
// no other call contradicts.
const enoughWrong = 20

// TestBrokenServers has the clients of the chaos runs work on a server that is broken on
// purpose, between it and them, and wants the checkers to find it in what they recorded:
// that they cannot fail is what TestLoad would never show.
func TestBrokenServers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		breaks func(*broken) http.RoundTripper
		want   []check.Promise
	}{
		{"lost write", func(b *broken) http.RoundTripper { return roundTrip(b.loseWrites) }, []check.Promise{check.Acknowledged, check.Linearizable}},
		{"stale read", func(b *broken) http.RoundTripper { return roundTrip(b.readOld) }, []check.Promise{check.FreshReads, check.Linearizable}},
		{"skipped event", func(b *broken) http.RoundTripper { return roundTrip(b.skipEvents) }, []check.Promise{check.Reliable}},
		{"repeated event", func(b *broken) http.RoundTripper { return roundTrip(b.repeatEvents) }, []check.Promise{check.Unique}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1, nil)
			config := c.clientConfig(0)
			wrong := new(atomic.Int64)
			config.Wrap(func(server http.RoundTripper) http.RoundTripper {
				return row.breaks(&broken{server: server, url: c.nodes[0].URL, wrong: wrong, seen: map[string][]byte{}})
			})
			seed := rand.Uint64()
			h, final := c.loadThrough(config, seed, func(rec *history.Recorder) {
				c.calm(rec)
				for began := time.Now(); wrong.Load() < enoughWrong && time.Since(began) < calmLimit; {
					c.wait(calmTime / 4)
				}
			})
			found := map[check.Promise]bool{}
			for _, f := range check.All(h, final) {
				found[f.Promise] = found[f.Promise] || !f.Undecided
			}
			for _, promise := range row.want {
				if !found[promise] {
					t.Errorf("seed %d: %q is not found broken, only %v", seed, promise, found)
				}
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// broken stands between the clients and a server.
type broken struct {
	server http.RoundTripper
	url    string
	wrong  *atomic.Int64 // answers, of all clients' connections

	mu    sync.Mutex
	count int
	seen  map[string][]byte // the first answer to each GET
}

// turn says whether it is time for a wrong answer.
func (b *broken) turn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	if b.count%brokenEvery != 0 {
		return false
	}
	b.wrong.Add(1)
	return true
}

// loseWrites acknowledges updates that it does not keep, at a version of their own: that of
// another write, of another kind.
func (b *broken) loseWrites(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/pods/") || !b.turn() {
		return b.server.RoundTrip(request)
	}
	version, err := b.burnVersion(request)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = "dryRun=All"
	response, err := b.server.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	var object map[string]any
	if err := json.NewDecoder(response.Body).Decode(&object); err != nil {
		return nil, err
	}
	object["metadata"].(map[string]any)["resourceVersion"] = version
	body, err := json.Marshal(object)
	return withBody(response, body), err
}

func (b *broken) burnVersion(like *http.Request) (string, error) {
	body := `{"metadata":{"labels":{"burn":"` + time.Now().Format("150405.000000000") + `"}}}`
	request, err := http.NewRequestWithContext(like.Context(), http.MethodPatch, b.url+"/api/v1/namespaces/default", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header = like.Header.Clone()
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := b.server.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(response.Body).Decode(&object)
	return object.Metadata.ResourceVersion, err
}

// readOld answers with what it answered first.
func (b *broken) readOld(request *http.Request) (*http.Response, error) {
	response, err := b.server.RoundTrip(request)
	if err != nil || request.Method != http.MethodGet || request.URL.RawQuery != "" || response.StatusCode != http.StatusOK {
		return response, err
	}
	turn := b.turn()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.seen[request.URL.Path]; old == nil {
		b.seen[request.URL.Path] = body
	} else if turn {
		body = old
	}
	return withBody(response, body), nil
}

func (b *broken) skipEvents(request *http.Request) (*http.Response, error) {
	return b.events(request, func([]byte) []byte { return nil })
}

func (b *broken) repeatEvents(request *http.Request) (*http.Response, error) {
	return b.events(request, func(line []byte) []byte { return append(line, line...) })
}

// events changes some lines of a watch.
func (b *broken) events(request *http.Request, change func(line []byte) []byte) (*http.Response, error) {
	response, err := b.server.RoundTrip(request)
	if err != nil || !request.URL.Query().Has("watch") || response.StatusCode != http.StatusOK {
		return response, err
	}
	stream, out := bufio.NewReader(response.Body), bytes.Buffer{}
	body := response.Body
	response.Body = &lines{Closer: body, read: func(p []byte) (int, error) {
		for out.Len() == 0 {
			line, err := stream.ReadBytes('\n')
			if bytes.HasPrefix(line, []byte(`{"type":"MODIFIED"`)) && b.turn() {
				line = change(line)
			}
			out.Write(line)
			if err != nil && out.Len() == 0 {
				return 0, err
			}
		}
		return out.Read(p)
	}}
	return response, nil
}

type lines struct {
	io.Closer
	read func([]byte) (int, error)
}

func (l *lines) Read(p []byte) (int, error) { return l.read(p) }

func withBody(response *http.Response, body []byte) *http.Response {
	response.Body.Close()
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response
}
