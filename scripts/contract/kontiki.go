package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"kontiki/scripts/servers"
)

const nodes = 3

// A kontiki is a cluster on loopback, and two ways to ask it.
type kontiki struct {
	root, dir        string
	leads            string // the name of the node behind leader
	leader, follower *server
}

// startKontiki starts a new cluster in dir with scripts/cluster.sh.
func startKontiki(ctx context.Context, root, dir string) (*kontiki, error) {
	if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600); err != nil {
		return nil, err
	}
	port, err := freeBase()
	if err != nil {
		return nil, err
	}
	k := &kontiki{root: root, dir: dir}
	if err := k.script(ctx, "up", "--nodes", fmt.Sprint(nodes), "--api-port", fmt.Sprint(port)); err != nil {
		return nil, fmt.Errorf("start kontiki: %w", err)
	}
	return k, k.find(ctx)
}

func (k *kontiki) stop() { _ = k.script(context.Background(), "down") }

func (k *kontiki) script(ctx context.Context, command string, flags ...string) error {
	script := filepath.Join(k.root, "scripts", "cluster.sh")
	cmd := exec.CommandContext(ctx, script, append([]string{command, "--dir", k.dir}, flags...)...)
	cmd.Env = append(os.Environ(), "KONTIKI_TOKEN_AUTH_FILE="+filepath.Join(k.dir, "tokens"),
		"KONTIKI_SERVICE_CLUSTER_IP_RANGE="+servers.ServiceIPs)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// find asks the cluster who leads, and takes the next node as the follower.
func (k *kontiki) find(ctx context.Context) error {
	config, err := clientcmd.LoadFromFile(filepath.Join(k.dir, "kubeconfig"))
	if err != nil {
		return err
	}
	for name, cluster := range config.Clusters {
		s, err := newServer("kontiki "+name, cluster.Server, cluster.CertificateAuthorityData)
		if err != nil {
			return err
		}
		leader, err := s.leader(ctx)
		if err != nil {
			return err
		}
		if name == leader {
			k.leader, k.leads = s, name
		} else {
			k.follower = s
		}
	}
	if k.leader == nil || k.follower == nil {
		return fmt.Errorf("no leader among the nodes in %s", k.dir)
	}
	k.leader.name, k.follower.name = "leader", "follower"
	return nil
}

// leader is the name of the node that leads.
func (s *server) leader(ctx context.Context) (string, error) {
	got, err := s.send(ctx, get("/kontiki/v1/members"))
	if err != nil {
		return "", err
	}
	var members struct {
		Leader string `json:"leader"`
	}
	err = json.Unmarshal(got.body, &members)
	return members.Leader, err
}

// freeBase finds a port with which cluster.sh can work: those 10000 and 20000
// above it are in use too.
func freeBase() (int, error) {
	from := 21000 + int(time.Now().UnixNano()/1000)%4000
	for base := from; base < from+200; base += nodes {
		if free(base) && free(base+10000) && free(base+20000) {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no free ports from %d", from)
}

func free(base int) bool {
	for port := base; port < base+nodes; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		listener.Close()
	}
	return true
}
