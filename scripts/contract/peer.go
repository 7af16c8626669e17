package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	adminToken  = "contract-admin"
	nobodyToken = "contract-nobody"
	// tokens is the token file of both servers.
	tokens = adminToken + ",admin,admin-uid,\"system:masters\"\n" + nobodyToken + ",nobody,nobody-uid\n"

	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

// programs are processes that were started and are to be stopped, last first.
type programs struct{ running []*exec.Cmd }

// start runs a program with its output in dir/NAME.log.
func (p *programs) start(dir, program string, flags ...string) error {
	name := filepath.Base(program)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, flags...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is for us; we stop them
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w (scripts/peer/build.sh builds it)", name, err)
	}
	p.running = append(p.running, cmd)
	return nil
}

func (p *programs) stop() {
	for i := len(p.running) - 1; i >= 0; i-- {
		cmd := p.running[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		killer := time.AfterFunc(stopTimeout, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killer.Stop()
	}
}

// startPeer starts etcd, kube-apiserver and the two controllers that Kontiki has
// too, and returns the server once it is ready. Data and logs go to dir.
func startPeer(ctx context.Context, p *programs, binaries, dir string) (*server, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	loopback := func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[i]) }
	err = p.start(dir, filepath.Join(binaries, "etcd"),
		"--name=peer", "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+loopback(0), "--advertise-client-urls="+loopback(0),
		"--listen-peer-urls="+loopback(1), "--initial-advertise-peer-urls="+loopback(1), "--initial-cluster=peer="+loopback(1))
	if err != nil {
		return nil, err
	}
	if err := writeSecrets(dir); err != nil {
		return nil, err
	}
	if err := p.start(dir, filepath.Join(binaries, "kube-apiserver"), peerFlags(dir, loopback(0), ports[2])...); err != nil {
		return nil, err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	s, err := awaitPeer(ctx, dir, url)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigText, url, filepath.Join(dir, "apiserver.crt"), adminToken),
		0o600); err != nil {
		return nil, err
	}
	return s, p.start(dir, filepath.Join(binaries, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--controllers=garbage-collector-controller,namespace-controller",
		"--leader-elect=false", "--secure-port=0")
}

// peerFlags set up what Kontiki is meant to answer like. All else is upstream's default.
func peerFlags(dir, etcd string, port int) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + dir,
		"--token-auth-file=" + filepath.Join(dir, "tokens"),
		// Required, although nobody uses a service account.
		"--service-account-issuer=https://contract.invalid", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-key-file=" + filepath.Join(dir, "sa.key"),
		"--service-account-signing-key-file=" + filepath.Join(dir, "sa.key"),
		// Who may do what: system:masters everything, others what upstream's default
		// roles allow to everybody. Without credentials only health and version.
		"--authorization-mode=RBAC", "--authentication-config=" + filepath.Join(dir, "authentication"),
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

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: peer
clusters: [{name: peer, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: admin, user: {token: "%s"}}]
contexts: [{name: peer, context: {cluster: peer, user: admin}}]
`

func writeSecrets(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "sa.key"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(filepath.Join(dir, "authentication"), []byte(authentication), 0o600),
		os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600))
}

// awaitPeer waits for the certificate that the server makes, and until it is ready.
func awaitPeer(ctx context.Context, dir, url string) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	last := errors.New("it was never asked")
	for ctx.Err() == nil {
		ca, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
		if err == nil {
			var s *server
			if s, err = newServer("peer", url, ca); err != nil {
				return nil, err
			}
			if err = s.ready(ctx); err == nil {
				return s, nil
			}
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("kube-apiserver is not ready (its log: %s): %w", filepath.Join(dir, "kube-apiserver.log"), last)
}

// ready fails unless /readyz answers ok.
func (s *server) ready(ctx context.Context) error {
	response, err := s.begin(ctx, get("/readyz"))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(text)))
	}
	return err
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (p *programs) pids() string {
	var pids []string
	for _, cmd := range p.running {
		pids = append(pids, fmt.Sprint(cmd.Process.Pid))
	}
	return strings.Join(pids, " ")
}
