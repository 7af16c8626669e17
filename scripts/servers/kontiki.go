package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// A Kontiki says how to run a Kontiki cluster. Variables KONTIKI_* of the environment reach its nodes.
type Kontiki struct {
	Binary string
	Dir    string // for data and logs; exists
	Nodes  int
	Tokens string // the token file
	Token  string // the one that clients of the group show

	ports []int // three a node
}

// Start starts all nodes and returns once all are ready. What it has started it returns in any case.
func (k *Kontiki) Start(ctx context.Context) (*Group, error) {
	g := &Group{Name: "kontiki", serving: true}
	var err error
	if k.ports, err = freePorts(3 * k.Nodes); err != nil {
		return g, err
	}
	if err := os.WriteFile(k.tokenFile(), []byte(k.Tokens), 0o600); err != nil {
		return g, err
	}
	begin := time.Now()
	for i := range k.Nodes {
		node, err := g.Start(k.Dir, fmt.Sprintf("n%d", i+1), k.Binary, k.flags(i)...)
		if err != nil {
			return g, err
		}
		g.Replicas = append(g.Replicas, node)
	}
	if err := k.await(ctx, g); err != nil {
		return g, fmt.Errorf("%w (its logs: %s)", err, filepath.Join(k.Dir, "*.log"))
	}
	g.Ready = time.Since(begin)
	g.leader = g.kontikiLeader
	return g, nil
}

func (k *Kontiki) tokenFile() string { return filepath.Join(k.Dir, "tokens") }

// flags are those of node i. The first nodes found the cluster together, later ones only join it.
func (k *Kontiki) flags(i int) []string {
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", k.ports[port]) }
	flags := []string{
		"server", fmt.Sprintf("--name=n%d", i+1), "--data-dir=" + k.dataDir(i), "--pki-dir=" + filepath.Join(k.Dir, "pki"),
		"--service-cluster-ip-range=" + ServiceIPs,
		"--token-auth-file=" + k.tokenFile(), "--api-addr=" + at(3*i), "--peer-addr=" + at(3*i+1), "--gossip-addr=" + at(3*i+2),
	}
	if i < k.Nodes {
		flags = append(flags, fmt.Sprintf("--bootstrap-expect=%d", k.Nodes))
	}
	var others []string
	for j := range k.Nodes {
		if j != i {
			others = append(others, at(3*j+2))
		}
	}
	if len(others) > 0 {
		flags = append(flags, "--peers="+strings.Join(others, ","))
	}
	return flags
}

// Join has a new node join the cluster, and returns how long it takes until it is ready.
func (k *Kontiki) Join(ctx context.Context, g *Group) (time.Duration, error) {
	ports, err := freePorts(3)
	if err != nil {
		return 0, err
	}
	i := len(k.ports) / 3
	k.ports = append(k.ports, ports...)
	begin := time.Now()
	node, err := g.Start(k.Dir, fmt.Sprintf("n%d", i+1), k.Binary, k.flags(i)...)
	if err != nil {
		return 0, err
	}
	g.Replicas = append(g.Replicas, node)
	g.Endpoints = append(g.Endpoints, k.endpoint(i, g.Endpoints[0].CA))
	err = g.AwaitReady(ctx)
	return time.Since(begin), err
}

func (k *Kontiki) endpoint(i int, ca []byte) Endpoint {
	return Endpoint{Name: fmt.Sprintf("n%d", i+1), URL: fmt.Sprintf("https://127.0.0.1:%d", k.ports[3*i]), CA: ca, Token: k.Token}
}

// SnapshotDir is where node i keeps its snapshots.
func (k *Kontiki) SnapshotDir(i int) string { return filepath.Join(k.dataDir(i), "raft", "snapshots") }

func (k *Kontiki) dataDir(i int) string { return filepath.Join(k.Dir, fmt.Sprintf("n%d", i+1)) }

// await waits for the kubeconfig that a node makes, which has the CA, and until all are ready.
func (k *Kontiki) await(ctx context.Context, g *Group) error {
	var ca []byte
	if err := Until(ctx, func(context.Context) error {
		config, err := clientcmd.LoadFromFile(filepath.Join(k.dataDir(0), "admin.kubeconfig"))
		if err != nil {
			return err
		}
		for _, cluster := range config.Clusters {
			ca = cluster.CertificateAuthorityData
		}
		if len(ca) == 0 {
			return errors.New("no CA in admin.kubeconfig yet")
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range k.Nodes {
		g.Endpoints = append(g.Endpoints, k.endpoint(i, ca))
	}
	return g.AwaitReady(ctx)
}

// kontikiLeader asks all nodes that live who leads.
func (g *Group) kontikiLeader(ctx context.Context) (int, error) {
	for i, e := range g.Endpoints {
		if g.Replicas[i].Pid() == 0 {
			continue
		}
		client, err := e.Client()
		if err != nil {
			return 0, err
		}
		leader, err := e.namesLeader(ctx, client)
		client.CloseIdleConnections()
		if err != nil {
			return 0, err
		}
		for j, replica := range g.Replicas {
			if replica.Name == leader {
				return j, nil
			}
		}
	}
	return 0, errors.New("no node of kontiki leads")
}

func (e Endpoint) namesLeader(ctx context.Context, client *http.Client) (string, error) {
	body, err := e.Get(ctx, client, "/kontiki/v1/members")
	if err != nil {
		return "", err
	}
	var members struct{ Leader string }
	err = json.Unmarshal(body, &members)
	return members.Leader, err
}
