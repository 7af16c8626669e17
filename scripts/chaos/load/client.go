package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"kontiki/scripts/chaos/history"
)

const (
	dialTimeout = 2 * time.Second
	// pingAfter bounds how long a connection whose other end is gone is believed in.
	pingAfter = 3 * time.Second
	bodyMax   = 16 << 20

	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
)

// Client talks to one node. It never tries again: each request is one call in the history.
type Client struct {
	Node string
	url  string
	http *http.Client
	base *http.Transport
}

// Dial makes a client of a node with the CA and the credentials of config. It does not connect yet.
func Dial(e Endpoint, config *rest.Config) (*Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", e.URL, err)
	}
	dial := (&net.Dialer{Timeout: dialTimeout}).DialContext
	if config.Dial != nil { // from another machine than this one
		dial = config.Dial
	}
	base := &http.Transport{
		TLSClientConfig: tls, ForceAttemptHTTP2: true,
		DialContext:         dial,
		TLSHandshakeTimeout: dialTimeout,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, base)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", e.URL, err)
	}
	return &Client{Node: e.Node, url: e.URL, http: &http.Client{Transport: wrapped}, base: base}, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.base.CloseIdleConnections() }

// answer is a whole response.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (c *Client) open(ctx context.Context, method, path, body, contentType string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", jsonType)
	return c.http.Do(request)
}

func (c *Client) do(ctx context.Context, method, path, body, contentType string) (answer, error) {
	response, err := c.open(ctx, method, path, body, contentType)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, bodyMax))
	return answer{response.StatusCode, response.Header, data}, err
}

// Get reads a path as JSON into value.
func (c *Client) Get(ctx context.Context, path string, value any) error {
	a, err := c.do(ctx, http.MethodGet, path, "", jsonType)
	if err != nil {
		return err
	}
	if a.code != http.StatusOK {
		return fmt.Errorf("%s on %s: %d: %s", path, c.Node, a.code, a.body)
	}
	return json.Unmarshal(a.body, value)
}

// document is the part of an object, of a list and of a Status that matters here.
type document struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Continue        string            `json:"continue"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Items   []document `json:"items"`
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Details struct {
		Causes []struct {
			Type string `json:"reason"`
		} `json:"causes"`
	} `json:"details"`
}

func (d *document) version() uint64 {
	rv, _ := strconv.ParseUint(d.Metadata.ResourceVersion, 10, 64) // absent in a Status: 0
	return rv
}

func (d *document) value() string { return d.Metadata.Annotations[valueAnnotation] }

// outcome is what a client may conclude from an answer. A 504 and a connection that ended say nothing
// about a write; a 503 says that it was not proposed.
func outcome(a answer, err error) history.Outcome {
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return history.Refused // nothing was sent
	case err != nil:
		return history.Unknown
	case a.code < http.StatusMultipleChoices:
		return history.OK
	case a.code == http.StatusServiceUnavailable || a.code < http.StatusInternalServerError:
		return history.Refused
	default:
		return history.Unknown
	}
}

// fill completes a call with its answer, and returns the document in it.
func fill(op *history.Op, a answer, err error) (doc document) {
	op.Outcome, op.Code = outcome(a, err), a.code
	if err == nil {
		err = json.Unmarshal(a.body, &doc)
	}
	if err != nil { // an answer that broke off: it may be a yes, but of which version?
		op.Error, op.Code = err.Error(), 0
		if op.Outcome == history.OK {
			op.Outcome = history.Unknown
		}
		return doc
	}
	op.RetryIn, op.Warning = a.header.Get("Retry-After"), silence(a.header)
	if op.Outcome != history.OK {
		op.Error = doc.Message
		if causes := doc.Details.Causes; len(causes) > 0 {
			op.Cause = causes[0].Type
		}
	}
	return doc
}

// silence finds the warning that a node without a quorum gives, among others.
func silence(header http.Header) string {
	for _, warning := range header.Values("Warning") {
		if strings.Contains(warning, "no leader") {
			return warning
		}
	}
	return ""
}
