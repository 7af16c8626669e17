package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kontiki/api"
	"kontiki/cmd/kontiki/proxy"
)

// proxyContext is the name of what a proxy's kubeconfig leads to.
const proxyContext = "kontiki-proxy"

func newProxyCommand() *cobra.Command {
	c := newConnection()
	var listen, kubeconfig string
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Listen on loopback and pass connections to a node that is well",
		Long: `Listen on loopback and pass connections to a node that is well.

The nodes are those of the kubeconfig that have the same CA, and, with rights to
read them, the cluster's members. Clients keep their own credentials and TLS ends
at the node: point them at the proxy's address, or let --write-kubeconfig do it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := hclog.New(&hclog.LoggerOptions{Name: "kontiki-proxy", Level: hclog.Info, Output: cmd.ErrOrStderr()})
			return c.proxy(cmd.Context(), listen, kubeconfig, log)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:6440", "loopback host:port to listen on")
	cmd.Flags().StringVar(&kubeconfig, "write-kubeconfig", "", "file for a kubeconfig with the same credentials that leads through the proxy")
	return cmd
}

func (c *connection) proxy(ctx context.Context, listen, kubeconfig string, log hclog.Logger) error {
	all, chosen, err := c.kubeconfig()
	if err != nil {
		return err
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	if err := keepsOthers(kubeconfig); err != nil {
		return err
	}
	listener, err := listenLoopback(listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	through := "https://" + listener.Addr().String()
	if kubeconfig != "" {
		if err := writeProxied(chosen, through, kubeconfig); err != nil {
			return err
		}
	}
	cfg := proxy.DefaultConfig()
	cfg.Logger = log
	if cfg.Servers, err = nodesOf(all, chosen); err != nil {
		return err
	}
	if cfg.Check, err = readyCheck(config); err != nil {
		return err
	}
	config.Host = through
	if cfg.List, err = memberList(config); err != nil {
		return err
	}
	log.Info("passing connections on", "listen", listener.Addr(), "servers", cfg.Servers)
	return proxy.New(cfg).Serve(ctx, listener)
}

// listenLoopback refuses other addresses: the nodes' certificates do not hold
// for them.
func listenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--listen %q: want a loopback address and a port, like 127.0.0.1:6440", address)
	}
	return net.Listen("tcp", address)
}

// kubeconfig reads all of the kubeconfig, and of it what belongs to the chosen
// context, both with the files that they name read.
func (c *connection) kubeconfig() (all, chosen *clientcmdapi.Config, err error) {
	if all, err = c.rules.Load(); err != nil {
		return nil, nil, err
	}
	if c.overrides.CurrentContext != "" {
		all.CurrentContext = c.overrides.CurrentContext
	}
	chosen = all.DeepCopy()
	if err := clientcmdapi.MinifyConfig(chosen); err != nil {
		return nil, nil, fmt.Errorf("%w: give --kubeconfig or --context, as for kubectl", err)
	}
	return all, chosen, errors.Join(clientcmdapi.FlattenConfig(all), clientcmdapi.FlattenConfig(chosen))
}

// nodesOf lists the servers of the chosen context's cluster: its own first, then
// those in the kubeconfig with the same CA.
func nodesOf(all, chosen *clientcmdapi.Config) ([]string, error) {
	var servers []string
	var authority []byte
	for _, cluster := range chosen.Clusters { // there is one
		server, err := url.Parse(cluster.Server)
		if err != nil || server.Scheme != "https" || server.Port() == "" {
			return nil, fmt.Errorf("the kubeconfig's server %q is not https://host:port", cluster.Server)
		}
		servers, authority = append(servers, server.Host), cluster.CertificateAuthorityData
	}
	for _, name := range slices.Sorted(maps.Keys(all.Clusters)) {
		cluster := all.Clusters[name]
		server, err := url.Parse(cluster.Server)
		if err == nil && server.Port() != "" && bytes.Equal(cluster.CertificateAuthorityData, authority) && !slices.Contains(servers, server.Host) {
			servers = append(servers, server.Host)
		}
	}
	return servers, nil
}

// readyCheck asks a server whether it is ready, over a connection that it keeps.
func readyCheck(config *rest.Config) (func(context.Context, string) error, error) {
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config)) // anybody may ask
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, address string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", response.Status)
		}
		return nil
	}, nil
}

// memberList asks for the members, through the proxy itself. Without the right to
// know them the list stays as it is.
func memberList(config *rest.Config) (func(context.Context) ([]string, error), error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]string, error) {
		body, err := client.Get().AbsPath(api.MembersPath).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var members api.Members
		if err := json.Unmarshal(body, &members); err != nil {
			return nil, err
		}
		var addresses []string
		for _, m := range members.Members {
			if m.APIAddr != "" {
				addresses = append(addresses, m.APIAddr)
			}
		}
		return addresses, nil
	}, nil
}

// keepsOthers refuses a file with contexts that are not a proxy's: it would lose them.
func keepsOthers(file string) error {
	if file == "" {
		return nil
	}
	there, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--write-kubeconfig: %s is there and no kubeconfig: name another file: %w", file, err)
	}
	for name := range there.Contexts {
		if name != proxyContext {
			return fmt.Errorf("--write-kubeconfig: %s has a context %s, which would be lost: name another file", file, name)
		}
	}
	return nil
}

// writeProxied writes a kubeconfig that differs from the chosen context in the
// server alone.
func writeProxied(chosen *clientcmdapi.Config, server, file string) error {
	through := clientcmdapi.NewConfig()
	through.CurrentContext = proxyContext
	through.Contexts[proxyContext] = &clientcmdapi.Context{Cluster: proxyContext, AuthInfo: proxyContext}
	for _, cluster := range chosen.Clusters {
		cluster = cluster.DeepCopy()
		cluster.Server = server
		through.Clusters[proxyContext] = cluster
	}
	for _, user := range chosen.AuthInfos {
		through.AuthInfos[proxyContext] = user
	}
	for _, old := range chosen.Contexts {
		through.Contexts[proxyContext].Namespace = old.Namespace
	}
	return clientcmd.WriteToFile(*through, file)
}
