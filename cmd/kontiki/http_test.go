package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// rawClient asks a node over plain HTTP, to see what client-go would hide.
type rawClient struct {
	t      testing.TB
	url    string
	client *http.Client
	header http.Header
}

// answer is a whole response.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// http is the administrator's connection to node i.
func (c *testCluster) http(i int) *rawClient {
	c.t.Helper()
	client, err := rest.HTTPClientFor(c.clientConfig(i))
	if err != nil {
		c.t.Fatal(err)
	}
	return &rawClient{t: c.t, url: c.nodes[i].URL, client: client, header: http.Header{}}
}

// stranger is a connection to node i without credentials, or with those given.
// It does not check whom it talks to.
func (c *testCluster) stranger(i int, token string, certs ...tls.Certificate) *rawClient {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}
	c.t.Cleanup(transport.CloseIdleConnections)
	raw := &rawClient{t: c.t, url: c.nodes[i].URL, client: &http.Client{Transport: transport}, header: http.Header{}}
	if token != "" {
		raw.header.Set("Authorization", "Bearer "+token)
	}
	return raw
}

// with returns the client with one header more.
func (c *rawClient) with(key, value string) *rawClient {
	other := *c
	other.header = c.header.Clone()
	other.header.Set(key, value)
	return &other
}

func (c *rawClient) get(path string) answer { return c.do(http.MethodGet, path, nil) }

func (c *rawClient) do(method, path string, body []byte) answer {
	c.t.Helper()
	a, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *rawClient) try(method, path string, body []byte) (answer, error) {
	request, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header = c.header.Clone()
	response, err := c.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, data}, err
}

// status is the Status that every failure must come with.
func (a answer) status(t testing.TB) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(a.body, &status); err != nil || status.Kind != "Status" {
		t.Fatalf("answer %d is not a Status: %.200q", a.code, a.body)
	}
	if int(status.Code) != a.code {
		t.Errorf("answer %d says %d in its Status", a.code, status.Code)
	}
	return status
}

func fromJSON(data []byte, into any) error { return json.Unmarshal(data, into) }
