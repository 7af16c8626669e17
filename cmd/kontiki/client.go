package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection finds a cluster as kubectl does: by --kubeconfig, $KUBECONFIG or
// ~/.kube/config, and --context.
type connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

func newConnection() *connection {
	return &connection{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
}

// AddFlags makes the flags of a command that talks to a cluster.
func (c *connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig to use (default: its current one)")
}

// config is the chosen context's.
func (c *connection) config() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoKubeconfig
	}
	return config, err
}

// errNoKubeconfig stands for client-go's own words, which name a variable that does not help.
var errNoKubeconfig = errors.New("no kubeconfig is found: set $KUBECONFIG or --kubeconfig; a node has one in DATA-DIR/admin.kubeconfig")

// client talks to the chosen server. Its errors are the Statuses that the
// server sent.
func (c *connection) client() (*rest.RESTClient, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return newClient(config)
}

// clientAt is client for the server at another address of the same cluster.
func (c *connection) clientAt(address string) (*rest.RESTClient, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	config.Host, config.TLSClientConfig.ServerName = "https://"+address, ""
	return newClient(config)
}

func newClient(config *rest.Config) (*rest.RESTClient, error) {
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.UserAgent = "kontiki/" + buildVersion()
	return rest.UnversionedRESTClientFor(config)
}

// get reads one of Kontiki's own endpoints into value.
func (c *connection) get(ctx context.Context, path string, value any) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return ask(ctx, client, http.MethodGet, path, nil, value)
}

// post sends question to one of Kontiki's own endpoints and reads the answer
// into value.
func (c *connection) post(ctx context.Context, path string, question, value any) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return ask(ctx, client, http.MethodPost, path, question, value)
}

// ask sends question, if there is one, as JSON and reads the answer into value.
func ask(ctx context.Context, client *rest.RESTClient, method, path string, question, value any) error {
	request := client.Verb(method).AbsPath(path).Timeout(callTimeout)
	if question != nil {
		body, err := json.Marshal(question)
		if err != nil {
			return err
		}
		request = request.SetHeader("Content-Type", "application/json").Body(body)
	}
	body, err := answerOf(request.Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, value)
}

// answerOf is a result's body, or the Status that the server sent instead: Raw
// alone makes up its own from the code.
func answerOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// callTimeout bounds one question to one of Kontiki's own endpoints.
const callTimeout = 30 * time.Second
