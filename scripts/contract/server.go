package main

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// requestTimeout is above what any request may take: upstream gives up after 60s.
const requestTimeout = 90 * time.Second

// userAgent names the manager in managedFields.
const userAgent = "contract/1.0"

// A server is one address of the API, of the peer or of a Kontiki node.
type server struct {
	name   string
	url    string
	client *http.Client
	record *record // if this is not a server, but what one said once
}

func newServer(name, url string, ca []byte) (*server, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate in the CA of %s", name)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 16,
	}
	return &server{name: name, url: url, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// credentials are the Authorization headers by user; "" may do everything.
var credentials = map[string]string{
	"":         "Bearer " + adminToken,
	"nobody":   "Bearer " + nobodyToken, // known, without any rights
	"stranger": "Bearer not-a-token",
	"none":     "",
	"basic":    "Basic YTpi",
}

// An answer is what came back: either a whole body, or a stream that goes on.
type answer struct {
	status int
	proto  string
	header http.Header
	body   []byte
	stream *stream
}

// send makes one request. A watch that is accepted comes back with its stream open.
func (s *server) send(ctx context.Context, request step) (*answer, error) {
	timeout, cancel := context.WithTimeout(ctx, requestTimeout)
	response, err := s.begin(timeout, request)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %s: %w", s.name, request, err)
	}
	got := &answer{status: response.StatusCode, proto: response.Proto, header: response.Header}
	if request.watch && response.StatusCode == http.StatusOK {
		got.stream = follow(response, cancel)
		return got, nil
	}
	defer cancel()
	defer response.Body.Close()
	if got.body, err = readAll(response); err != nil {
		return nil, fmt.Errorf("%s: %s: read the answer: %w", s.name, request, err)
	}
	return got, nil
}

func (s *server) begin(ctx context.Context, request step) (*http.Response, error) {
	body := []byte(request.body)
	header := map[string]string{"User-Agent": userAgent, "Authorization": credentials[request.user]}
	if request.proto {
		encoded, err := toProtobuf(body)
		if err != nil {
			return nil, err
		}
		body, header["Content-Type"] = encoded, protobufMedia
	}
	for _, pair := range request.header {
		header[pair[0]] = pair[1]
	}
	req, err := http.NewRequestWithContext(ctx, request.method, s.url+request.target(), strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	for key, value := range header {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	return s.client.Do(req)
}

func readAll(response *http.Response) ([]byte, error) {
	if response.Header.Get("Content-Encoding") != "gzip" || response.Request.Method == http.MethodHead {
		return io.ReadAll(response.Body)
	}
	unzipped, err := gzip.NewReader(response.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzipped)
}
