package api

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event is one of a watch, whatever its object.
type event struct {
	Type   string
	Object struct {
		metav1.PartialObjectMetadata `json:",inline"`
		ColumnDefinitions            []metav1.TableColumnDefinition
		Rows                         []struct{ Object metav1.PartialObjectMetadata }
	}
}

// watchOver opens a watch over HTTP; the stream ends with the test.
func (h *harness) watchOver(t *testing.T, target, accept string) *json.Decoder {
	t.Helper()
	server := httptest.NewServer(h.handler)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer token-of-root")
	r.Header.Set("Accept", accept)
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		response.Body.Close()
		server.Close()
	})
	if response.StatusCode != http.StatusOK {
		t.Fatalf("watch: %s", response.Status)
	}
	return json.NewDecoder(response.Body)
}

func nextEvent(t *testing.T, stream *json.Decoder) (e event) {
	t.Helper()
	if err := stream.Decode(&e); err != nil {
		t.Fatalf("the watch ended: %v", err)
	}
	return e
}

// TestTableWatch: the first event of a stream has the columns, the others only
// rows, for each who watches. A cached table once lacked them for the second.
func TestTableWatch(t *testing.T) {
	h := newHarness(t)
	h.must(http.MethodPost, leases, lease(""), "Content-Type", jsonType)
	for watcher := range 3 {
		stream := h.watchOver(t, leases+"?watch=1", "application/json;as=Table;v=v1;g=meta.k8s.io")
		for i := range 3 {
			if i > 0 {
				h.must(http.MethodPatch, leases+"/there", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d-%d"}}}`, watcher, i), "Content-Type", mergeType)
			}
			e := nextEvent(t, stream)
			if e.Object.Kind != "Table" || len(e.Object.Rows) != 1 || e.Object.Rows[0].Object.Name != "there" {
				t.Fatalf("watcher %d, event %d: %+v", watcher, i, e)
			}
			if columns := len(e.Object.ColumnDefinitions); columns > 0 != (i == 0) {
				t.Errorf("watcher %d, event %d has %d columns", watcher, i, columns)
			}
		}
	}
}

// TestBookmark: a watch tells the version it has come to, shortly before it ends.
func TestBookmark(t *testing.T) {
	t.Parallel() // it waits for a second
	h := newHarness(t)
	from := meta(t, h.must(http.MethodGet, leases, "")).ResourceVersion
	stream := h.watchOver(t, leases+"?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion="+from, jsonType)
	// Not of this topic, but the version moves on.
	other := meta(t, h.must(http.MethodPost, "/api/v1/nodes", `{"metadata":{"name":"n"}}`, "Content-Type", jsonType))
	e := nextEvent(t, stream)
	if e.Type != "BOOKMARK" || e.Object.Kind != "Lease" || e.Object.ResourceVersion != other.ResourceVersion {
		t.Errorf("got %+v, want a bookmark at %s", e, other.ResourceVersion)
	}
}

// TestEndOfStream: a watch without bookmarks ends at its timeout, without a word.
func TestEndOfStream(t *testing.T) {
	t.Parallel() // it waits for a second
	h := newHarness(t)
	var e event
	if err := h.watchOver(t, leases+"?watch=1&timeoutSeconds=1", jsonType).Decode(&e); err != io.EOF {
		t.Errorf("%+v %v", e, err)
	}
}

// TestWebSocketWatch: a client that asks for a WebSocket gets a message an event.
func TestWebSocketWatch(t *testing.T) {
	h := newHarness(t)
	h.must(http.MethodPost, leases, lease(""), "Content-Type", jsonType)
	server := httptest.NewServer(h.handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nAuthorization: Bearer token-of-root\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", leases)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v %v", response, err)
	}
	// The answer to this key is in RFC 6455.
	if accept := response.Header.Get("Sec-WebSocket-Accept"); accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("handshake: accept is %q", accept)
	}
	var seen []string
	for i := range 3 {
		if i == 1 {
			h.must(http.MethodPatch, leases+"/there", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergeType)
			h.must(http.MethodDelete, leases+"/there", "")
		}
		var e event
		if err := json.Unmarshal(message(t, reader), &e); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Type+" "+e.Object.Name)
	}
	if got := strings.Join(seen, ", "); got != "ADDED there, MODIFIED there, DELETED there" {
		t.Errorf("seen: %s", got)
	}
}

// message reads a message that is one frame; a server does not mask it.
func message(t *testing.T, r *bufio.Reader) []byte {
	t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if head[0] != 0x81 {
		t.Fatalf("frame begins with %#x, want one of text that is final", head[0])
	}
	size := uint64(head[1])
	if size >= 126 {
		long := make([]byte, 8)
		tail := long[map[uint64]int{126: 6, 127: 0}[size]:]
		if _, err := io.ReadFull(r, tail); err != nil {
			t.Fatal(err)
		}
		size = binary.BigEndian.Uint64(long)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	return body
}
