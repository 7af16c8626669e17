package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// startTimeout is the most that a start may take; on a busy machine kube-apiserver takes a while.
const startTimeout = 2 * time.Minute

// readyEvery is how often a server is asked whether it is ready.
const readyEvery = 5 * time.Millisecond

// An Endpoint is one address of the API.
type Endpoint struct {
	Name  string
	URL   string
	CA    []byte // PEM
	Token string
}

// A Group is the processes that serve one API together.
type Group struct {
	Programs
	Name string
	// Ready is the time from the start of the first process until every endpoint was ready.
	Ready time.Duration
	// Endpoints is where clients may connect.
	Endpoints []Endpoint
	// Replicas keep the data and elect a leader: Kontiki's nodes, or the members of etcd.
	Replicas []*Program

	serving bool // Endpoints[i] is served by Replicas[i]
	leader  func(context.Context) (int, error)
}

// Leader is the index of the replica that leads, -1 in a group without any.
func (g *Group) Leader(ctx context.Context) (int, error) {
	if g.leader == nil {
		return -1, nil
	}
	return g.leader(ctx)
}

// Without is the endpoints that stay when a replica is lost.
func (g *Group) Without(replica int) (stay []Endpoint) {
	for i, e := range g.Endpoints {
		if !g.serving || i != replica {
			stay = append(stay, e)
		}
	}
	return stay
}

// Transport makes connections to e that nothing else shares.
func (e Endpoint) Transport() (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(e.CA) {
		return nil, fmt.Errorf("no certificate in the CA of %s", e.Name)
	}
	return &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}, nil
}

// Client makes requests to e, with connections of its own.
func (e Endpoint) Client() (*http.Client, error) {
	transport, err := e.Transport()
	return &http.Client{Transport: transport}, err
}

// Get is the body of what the server answers to a GET, if it is 200.
func (e Endpoint) Get(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+e.Token)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return body, err
}

// AwaitReady waits until every endpoint says that it is ready.
func (g *Group) AwaitReady(ctx context.Context) error {
	for _, e := range g.Endpoints {
		client, err := e.Client()
		if err != nil {
			return err
		}
		err = Until(ctx, func(ctx context.Context) error {
			_, err := e.Get(ctx, client, "/readyz")
			return err
		})
		client.CloseIdleConnections()
		if err != nil {
			return fmt.Errorf("%s is not ready: %w", e.Name, err)
		}
	}
	return nil
}

// Until tries again and again until there is no error, or ctx is done, or startTimeout is over.
func Until(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		last := try(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(readyEvery):
		}
	}
}
