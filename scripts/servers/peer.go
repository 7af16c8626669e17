package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ServiceIPs is the range of the addresses of services, of Kontiki and of its peer: what they give
// out is recognized by it.
const ServiceIPs = "10.96.0.0/16"

// A Peer says how to run kube-apiserver on etcd.
type Peer struct {
	Binaries string // where scripts/peer/build.sh has put the programs
	Dir      string // for data and logs; exists
	Members  int    // of etcd
	Fsync    bool   // etcd waits for its disk
	Tokens   string // the token file
	Token    string // the one that clients of the group show
}

// Start starts all processes and returns once the API is ready. What it has started it returns in any case.
func (p Peer) Start(ctx context.Context) (*Group, error) {
	g := &Group{Name: "kube-apiserver"}
	ports, err := freePorts(2*p.Members + 1)
	if err != nil {
		return g, err
	}
	if err := p.writeSecrets(); err != nil {
		return g, err
	}
	begin := time.Now()
	clients, err := p.startMembers(g, ports)
	if err != nil {
		return g, err
	}
	port := ports[2*p.Members]
	if _, err := g.Start(p.Dir, "kube-apiserver", filepath.Join(p.Binaries, "kube-apiserver"), p.flags(clients, port)...); err != nil {
		return g, err
	}
	g.leader = func(ctx context.Context) (int, error) { return etcdLeader(ctx, clients) }
	return g, p.await(ctx, g, port, begin)
}

// await waits for the certificate that kube-apiserver makes, and until it is ready.
func (p Peer) await(ctx context.Context, g *Group, port int, begin time.Time) error {
	e := Endpoint{Name: "kube-apiserver", URL: fmt.Sprintf("https://127.0.0.1:%d", port), Token: p.Token}
	err := Until(ctx, func(context.Context) (err error) {
		e.CA, err = os.ReadFile(p.CAFile())
		if err == nil {
			_, err = e.Client()
		}
		return err
	})
	g.Endpoints = []Endpoint{e}
	if err == nil {
		err = g.AwaitReady(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w (its log: %s)", err, filepath.Join(p.Dir, "kube-apiserver.log"))
	}
	g.Ready = time.Since(begin)
	return nil
}

// CAFile is the file with kube-apiserver's certificate, once it is ready.
func (p Peer) CAFile() string { return filepath.Join(p.Dir, "apiserver.crt") }

// startMembers returns the members' addresses for clients.
func (p Peer) startMembers(g *Group, ports []int) (clients []string, err error) {
	var cluster []string
	loopback := func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[i]) }
	for i := range p.Members {
		clients = append(clients, loopback(2*i))
		cluster = append(cluster, fmt.Sprintf("etcd%d=%s", i+1, loopback(2*i+1)))
	}
	for i := range p.Members {
		name := fmt.Sprintf("etcd%d", i+1)
		flags := []string{
			"--name=" + name, "--data-dir=" + filepath.Join(p.Dir, name), "--log-level=warn",
			"--listen-client-urls=" + loopback(2*i), "--advertise-client-urls=" + loopback(2*i),
			"--listen-peer-urls=" + loopback(2*i+1), "--initial-advertise-peer-urls=" + loopback(2*i+1),
			"--initial-cluster=" + strings.Join(cluster, ","),
		}
		if !p.Fsync {
			flags = append(flags, "--unsafe-no-fsync")
		}
		member, err := g.Start(p.Dir, name, filepath.Join(p.Binaries, "etcd"), flags...)
		if err != nil {
			return nil, err
		}
		g.Replicas = append(g.Replicas, member)
	}
	return clients, nil
}

// flags set up what Kontiki is meant to answer like. All else is upstream's default.
func (p Peer) flags(etcd []string, port int) []string {
	return []string{
		"--etcd-servers=" + strings.Join(etcd, ","),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + p.Dir,
		"--token-auth-file=" + filepath.Join(p.Dir, "tokens"),
		// Required, although nobody uses a service account.
		"--service-account-issuer=https://peer.invalid", "--service-cluster-ip-range=" + ServiceIPs,
		"--service-account-key-file=" + filepath.Join(p.Dir, "sa.key"),
		"--service-account-signing-key-file=" + filepath.Join(p.Dir, "sa.key"),
		// Who may do what: system:masters everything, others what upstream's default
		// roles allow to everybody. Without credentials only health and version.
		"--authorization-mode=RBAC", "--authentication-config=" + filepath.Join(p.Dir, "authentication"),
		// The plugin wants a ServiceAccount for every pod; Kontiki has no such kind.
		"--disable-admission-plugins=ServiceAccount",
		// Flow schemas are a kind that Kontiki doesn't have.
		"--enable-priority-and-fairness=false",
		// No Endpoints of the server itself in the namespace default.
		"--endpoint-reconciler-type=none",
	}
}

const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}, {path: /healthz}, {path: /version}]}
`

func (p Peer) writeSecrets() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return errors.Join(
		os.WriteFile(filepath.Join(p.Dir, "sa.key"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(filepath.Join(p.Dir, "authentication"), []byte(authentication), 0o600),
		os.WriteFile(filepath.Join(p.Dir, "tokens"), []byte(p.Tokens), 0o600))
}

// etcdLeader asks each member whether it leads.
func etcdLeader(ctx context.Context, clients []string) (int, error) {
	for i, url := range clients {
		var status struct {
			Header struct {
				MemberID string `json:"member_id"`
			}
			Leader string
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/maintenance/status", bytes.NewBufferString("{}"))
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // it is down
		}
		err = json.NewDecoder(response.Body).Decode(&status)
		response.Body.Close()
		if err != nil {
			return 0, err
		}
		if status.Leader == status.Header.MemberID {
			return i, nil
		}
	}
	return 0, errors.New("no member of etcd leads")
}
