package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/api/registry"
	"kontiki/cluster/pki"
)

// fakeKubelet plays the log endpoint of a node's kubelet, over real TLS.
type fakeKubelet struct {
	*httptest.Server
	asked chan kubeletRequest
	lines chan string   // what a followed log says next; closing it ends the log
	left  chan struct{} // gets a word when who follows hangs up
	fails int           // what it answers if not 0
}

// kubeletRequest is what the kubelet was asked, and by whom.
type kubeletRequest struct {
	path  string
	query url.Values
	user  string // common name of the client's certificate
}

func newFakeKubelet(t testing.TB, config *tls.Config) *fakeKubelet {
	k := &fakeKubelet{asked: make(chan kubeletRequest, 100), lines: make(chan string), left: make(chan struct{}, 1)}
	handler := http.NewServeMux()
	handler.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLog)
	k.Server = httptest.NewUnstartedServer(handler)
	k.TLS = config
	k.Config.ErrorLog = log.New(io.Discard, "", 0)
	k.StartTLS()
	t.Cleanup(k.CloseClientConnections)
	t.Cleanup(k.Close)
	return k
}

func (k *fakeKubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	request := kubeletRequest{path: r.URL.Path, query: r.URL.Query()}
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		request.user = certs[0].Subject.CommonName
	}
	k.asked <- request
	switch {
	case k.fails != 0:
		http.Error(w, "so says the kubelet", k.fails)
		return
	case r.URL.Query().Get("follow") != "true":
		fmt.Fprintln(w, "so says", r.PathValue("container"))
		return
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case line, ok := <-k.lines:
			if !ok {
				return
			}
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			k.left <- struct{}{}
			return
		}
	}
}

// register makes a node of that name whose kubelet this is, and a pod on it of
// the same name.
func (k *fakeKubelet) register(t testing.TB, client kubernetes.Interface, name string, containers ...string) {
	t.Helper()
	at, err := url.Parse(k.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, service, err := net.SplitHostPort(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		t.Fatal(err)
	}
	registerNode(t, client, name, corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: host}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
	})
	putPod(t, client, name, name, containers...)
}

func registerNode(t testing.TB, client kubernetes.Interface, name string, status corev1.NodeStatus) {
	t.Helper()
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status = status
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// putPod makes a pod on a node, or on none.
func putPod(t testing.TB, client kubernetes.Interface, name, node string, containers ...string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: container + ":1"})
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func logPath(pod, query string) string {
	return "/api/v1/namespaces/default/pods/" + pod + "/log?" + query
}

// TestLogParameters: every option of a log reaches the kubelet, as upstream
// writes it, and no other.
func TestLogParameters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	kubelet := newFakeKubelet(t, nil)
	kubelet.register(t, kubernetes.NewForConfigOrDie(c.clientConfig(0)), "host", "main")
	close(kubelet.lines)
	for n, try := range []struct{ query, container, want string }{
		{"", "main", ""},
		{"container=main", "main", ""},
		{"container=init", "init", ""},
		{"follow=true", "main", "follow=true"},
		{"follow=false&previous=0", "main", ""},
		{"previous=true", "main", "previous=true"},
		{"timestamps=true", "main", "timestamps=true"},
		{"tailLines=0", "main", "tailLines=0"},
		{"tailLines=7", "main", "tailLines=7"},
		{"limitBytes=99", "main", "limitBytes=99"},
		{"sinceSeconds=30", "main", "sinceSeconds=30"},
		{"sinceTime=2026-01-02T05:04:05.6%2B02:00", "main", "sinceTime=2026-01-02T03:04:05Z"},
		{"insecureSkipTLSVerifyBackend=true&pretty=true", "main", ""},
		{"container=main&follow=true&previous=true&timestamps=true&tailLines=1&limitBytes=2&sinceSeconds=3", "main",
			"follow=true&previous=true&timestamps=true&tailLines=1&limitBytes=2&sinceSeconds=3"},
	} {
		a := c.http(n % len(c.nodes)).get(logPath("host", try.query))
		if a.code != http.StatusOK || a.header.Get("Content-Type") != "text/plain" {
			t.Errorf("%q: answer %d of type %q: %s", try.query, a.code, a.header.Get("Content-Type"), a.body)
			continue
		}
		if want := "so says " + try.container + "\n"; !strings.Contains(try.want, "follow") && string(a.body) != want {
			t.Errorf("%q: the log is %q, want %q", try.query, a.body, want)
		}
		got := <-kubelet.asked
		if at, err := time.Parse(time.RFC3339, got.query.Get("sinceTime")); err == nil {
			got.query.Set("sinceTime", at.UTC().Format(time.RFC3339)) // upstream sends its own zone
		}
		want, err := url.ParseQuery(try.want)
		if err != nil || got.path != "/containerLogs/default/host/"+try.container || !reflect.DeepEqual(got.query, want) {
			t.Errorf("%q: the kubelet was asked for %s?%s, want %s of %s, %v", try.query, got.path, got.query.Encode(), try.want, try.container, err)
		}
	}
}

// TestLogRefusals: what upstream answers where it does not get to a kubelet, or
// where the kubelet says no.
func TestLogRefusals(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	client := kubernetes.NewForConfigOrDie(c.clientConfig(0))
	kubelet := newFakeKubelet(t, nil)
	kubelet.register(t, client, "two", "a", "b")
	for name, fails := range map[string]int{"bad": 400, "forbidden": 403, "absent": 404, "broken": 500} {
		failing := newFakeKubelet(t, nil)
		failing.fails = fails
		failing.register(t, client, name, "main")
	}
	dead := newFakeKubelet(t, nil)
	dead.register(t, client, "dead", "main")
	dead.Close()
	registerNode(t, client, "nowhere", corev1.NodeStatus{})
	putPod(t, client, "nowhere", "nowhere", "main")
	putPod(t, client, "lost", "no-such-node", "main")
	putPod(t, client, "free", "", "main")
	for _, try := range []struct {
		pod, query string
		code       int
		say        string
	}{
		{"free", "", 204, ""},
		{"free", "follow=true", 204, ""},
		{"lost", "", 404, `pods "no-such-node" not found`}, // upstream says so of the node
		{"nowhere", "", 500, "no preferred addresses found"},
		{"dead", "", 500, "connection refused"},
		{"none", "", 404, `pods "none" not found`},
		{"two", "", 400, "a container name must be specified for pod two, choose one of: [init a b]"},
		{"two", "container=c", 400, "container c is not valid for pod two"},
		{"two", "container=a&tailLines=many", 400, `parsing "many": invalid syntax`},
		{"two", "container=a&sinceTime=yesterday", 400, "yesterday"},
		{"two", "container=a&tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"},
		{"two", "container=a&limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"},
		{"two", "container=a&sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"},
		{"two", "container=a&sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", 422, "at most one of `sinceTime` or `sinceSeconds`"},
		{"two", "container=a&stream=Stdout", 422, "stream: Forbidden: may not be specified"},
		{"two", "container=a&stream=All", 422, "stream: Forbidden: may not be specified"},
		{"bad", "", 400, "so says the kubelet"},
		{"forbidden", "", 403, "so says the kubelet"},
		{"absent", "", 404, "the server could not find the requested resource"},
		{"broken", "", 500, "so says the kubelet"},
	} {
		a := c.http(0).get(logPath(try.pod, try.query))
		switch {
		case a.code != try.code, !strings.Contains(string(a.body), strings.ReplaceAll(try.say, `"`, `\"`)):
			t.Errorf("%s?%s: answer %d, want %d with %q: %s", try.pod, try.query, a.code, try.code, try.say, a.body)
		case a.code == http.StatusNoContent && len(a.body) > 0:
			t.Errorf("%s?%s: no content, but %q", try.pod, try.query, a.body)
		case a.code != http.StatusNoContent:
			a.status(t)
		}
	}
	if len(kubelet.asked) > 0 {
		t.Errorf("a refused request reached the kubelet: %+v", <-kubelet.asked)
	}
}

// TestLogFollow: each line of a followed log arrives before the next one is
// written, the end of the log is the end of the answer, and the kubelet is told
// when nobody listens any more.
func TestLogFollow(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	client := kubernetes.NewForConfigOrDie(c.clientConfig(0))
	for name, protocols := range map[string][]string{"http1": {"http/1.1"}, "http2": {"h2", "http/1.1"}} {
		for _, ending := range []string{"kubelet", "client"} {
			t.Run(name+" ended by "+ending, func(t *testing.T) {
				kubelet := newFakeKubelet(t, nil)
				host := name + "-" + ending
				kubelet.register(t, client, host, "main")
				config := c.clientConfig(0)
				config.NextProtos = protocols
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				options := &corev1.PodLogOptions{Follow: true}
				stream, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").GetLogs(host, options).Stream(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				lines := bufio.NewReader(stream)
				for _, line := range []string{"one", "", "a line of " + strings.Repeat("x", 100_000), "four"} {
					kubelet.lines <- line
					if got, err := lines.ReadString('\n'); err != nil || got != line+"\n" {
						t.Fatalf("read %q, want %q: %v", got, line, err)
					}
				}
				if ending == "kubelet" {
					close(kubelet.lines)
					if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
						t.Errorf("after the end: %q, %v", rest, err)
					}
					return
				}
				stream.Close()
				select {
				case <-kubelet.left:
				case <-ctx.Done():
					t.Error("the kubelet still has a listener after the client hung up")
				}
			})
		}
	}
}

// TestLogTLS: with a CA configured no other kubelet is believed, with a client
// certificate it is shown.
func TestLogTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newKubeletCA(t), newKubeletCA(t)
	servers := map[string]*testCluster{}
	for name, kubelet := range map[string]registry.Kubelet{
		"bare":    {},
		"careful": {CAFile: ours.caFile},
		"known":   {CAFile: ours.caFile, CertFile: ours.certFile, KeyFile: ours.keyFile},
	} {
		servers[name] = newCluster(t, 1, func(_ int, cfg *Config) { cfg.Kubelet = kubelet })
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.CA)
	const refused = "tls: failed to verify certificate: x509: "
	for n, try := range []struct {
		server string
		of     *kubeletCA // who signed the kubelet's certificate
		client bool       // its certificate is not a server's
		strict bool       // it wants a client certificate
		query  string
		want   string // the user that the kubelet sees, or part of the refusal
	}{
		{server: "bare", of: theirs},
		{server: "bare", of: ours, strict: true, want: "error: tls: certificate required"},
		{server: "careful", of: ours},
		{server: "careful", of: theirs, want: "error: " + refused + "certificate signed by unknown authority"},
		{server: "careful", of: ours, client: true, want: "error: " + refused},
		{server: "careful", of: theirs, query: "insecureSkipTLSVerifyBackend=true"},
		{server: "careful", of: ours, strict: true, want: "error: tls: certificate required"},
		{server: "known", of: ours, strict: true, want: "kontiki-to-kubelet"},
		{server: "known", of: theirs, strict: true, want: "error: " + refused},
		{server: "known", of: theirs, strict: true, query: "insecureSkipTLSVerifyBackend=true", want: "kontiki-to-kubelet"},
	} {
		config := &tls.Config{Certificates: []tls.Certificate{try.of.serving(t, try.client)}, ClientAuth: tls.RequestClientCert}
		if try.strict {
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool
		}
		kubelet := newFakeKubelet(t, config)
		host := fmt.Sprintf("host-%d", n)
		c := servers[try.server]
		kubelet.register(t, kubernetes.NewForConfigOrDie(c.clientConfig(0)), host, "main")
		a := c.http(0).get(logPath(host, try.query))
		if reason, bad := strings.CutPrefix(try.want, "error: "); bad {
			if status := a.status(t); a.code != http.StatusInternalServerError || !strings.Contains(status.Message, reason) || len(kubelet.asked) > 0 {
				t.Errorf("%+v: answer %d, not refused with %q: %s", try, a.code, reason, a.body)
			}
			continue
		}
		if a.code != http.StatusOK {
			t.Errorf("%+v: answer %d: %s", try, a.code, a.body)
		} else if got := <-kubelet.asked; got.user != try.want {
			t.Errorf("%+v: the kubelet sees user %q", try, got.user)
		}
	}
}

// kubeletCA signs certificates for kubelets and for who asks them.
type kubeletCA struct {
	*pki.Cluster
	caFile, certFile, keyFile string
}

func newKubeletCA(t testing.TB) *kubeletCA {
	t.Helper()
	dir := t.TempDir()
	root, err := pki.EnsureCluster(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueClient("kontiki-to-kubelet", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca := &kubeletCA{root, filepath.Join(dir, "ca.crt"), filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")}
	for path, data := range map[string][]byte{ca.caFile: root.CAPEM(), ca.certFile: pair.CertPEM, ca.keyFile: pair.KeyPEM} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca
}

// serving makes a certificate for a kubelet on loopback, or one that is only a
// client's.
func (ca *kubeletCA) serving(t testing.TB, client bool) tls.Certificate {
	t.Helper()
	pair, err := ca.IssueNode("kubelet", nil)
	if client {
		pair, err = ca.IssueClient("kubelet", nil, time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
