package main

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kontiki/scripts/servers"
)

const (
	adminToken = "bench-admin"
	tokens     = adminToken + ",admin,admin-uid,\"system:masters\"\n"

	anyPath = "/api/v1/namespaces?limit=1" // to open a connection with

	protobufMedia = "application/vnd.kubernetes.protobuf"
	jsonMedia     = "application/json"
)

// A client is client-go on one connection to one node. It leaves answers encoded unless asked, so that the
// load takes little of the CPU that it shares with the servers.
type client struct {
	*rest.RESTClient
	node      string
	transport *http.Transport
}

func newClient(e servers.Endpoint, gzip bool) (*client, error) {
	transport, err := e.Transport()
	if err != nil {
		return nil, err
	}
	transport.DisableCompression = !gzip
	config := &rest.Config{
		// A transport given here is not shared with the other clients, and so is not its connection.
		Host: e.URL, BearerToken: e.Token, QPS: -1, UserAgent: "bench", Transport: transport, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			ContentType: protobufMedia, AcceptContentTypes: protobufMedia,
		},
	}
	c, err := rest.RESTClientFor(config)
	return &client{RESTClient: c, node: e.Name, transport: transport}, err
}

// get asks for a path below the API's root, and drops the answer.
func (c *client) get(ctx context.Context, path string) error {
	return c.Get().RequestURI(path).Do(ctx).Error()
}

// connect opens the connections of all workers, so that no phase measures handshakes.
func (t *target) connect(ctx context.Context, workers int, gzip bool) error {
	for w := range workers {
		c, err := newClient(t.group.Endpoints[w%len(t.group.Endpoints)], gzip)
		if err != nil {
			return err
		}
		if err := c.get(ctx, anyPath); err != nil {
			return fmt.Errorf("connect to %s: %w", c.node, err)
		}
		t.clients = append(t.clients, c)
	}
	return nil
}
