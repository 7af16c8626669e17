package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestProxyFailsOver kills and stops the nodes behind a proxy, one after the
// other: what a client begins afterwards must not fail. It begins with a new
// connection: a request that goes out on one just as that is cut may have been
// heard, and a client must not repeat a POST then.
func TestProxyFailsOver(t *testing.T) {
	c := newCluster(t, 3, nil)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	conn := newConnection()
	conn.rules.ExplicitPath = c.nodes[0].Kubeconfig
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- conn.proxy(ctx, "127.0.0.1:0", file, hclog.NewNullLogger()) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var transport *http.Client
	var client *kubernetes.Clientset
	until(t, func() error {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err == nil {
			transport, err = rest.HTTPClientFor(config)
		}
		if err == nil {
			client, err = kubernetes.NewForConfigAndClient(config, transport)
		}
		if err == nil {
			_, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		}
		return err
	})
	for i, end := range []func(int){c.stop, c.crash, c.stop} {
		end(i)
		utilnet.CloseIdleConnectionsFor(transport.Transport)
		for n := range 5 {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("without-%d-%d", i, n)}}
			if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
				t.Errorf("without node %d: %v", i, err)
			}
		}
		c.start(i)
		c.waitReady()
	}
}

func TestProxyListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:1", "127.0.0.1", ""} {
		if listener, err := listenLoopback(address); err == nil {
			listener.Close()
			t.Errorf("it listens on %q", address)
		}
	}
}
