package main

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"kontiki/api"
)

// kubeconfigRequest is for whom a kubeconfig is.
type kubeconfigRequest struct {
	user   string
	groups []string
	life   time.Duration
}

func newKubeconfigCommand() *cobra.Command {
	c := newConnection()
	var request kubeconfigRequest
	var file string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Make a kubeconfig with a context for every node",
		Long: `Make a kubeconfig with a new client certificate and a context for every node.

Without --user it is an administrator's. The certificate cannot be revoked:
give it a --ttl that fits. The key is made here and goes nowhere else.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if request.user == "" && cmd.Flags().Changed("user") {
				return errors.New("--user is empty: leave it out for an administrator")
			}
			if request.user == "" {
				request.user = adminUser
				if !cmd.Flags().Changed("group") {
					request.groups = []string{user.SystemPrivilegedGroup}
				}
			}
			config, err := c.newKubeconfig(cmd.Context(), request)
			if err != nil {
				return err
			}
			if file != "" {
				return mergeKubeconfig(file, config)
			}
			text, err := clientcmd.Write(*config)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.user, "user", "", "user's name (default: "+adminUser+", in the group "+user.SystemPrivilegedGroup+")")
	flags.StringSliceVar(&request.groups, "group", nil, "group of the user; may be repeated")
	flags.DurationVar(&request.life, "ttl", adminLife, "how long the certificate is good")
	flags.StringVarP(&file, "file", "f", "", "write to this file, keeping what else is in it (default: standard output)")
	c.AddFlags(flags)
	return cmd
}

// newKubeconfig has a key made here signed by the cluster. The current context
// is the node that was asked.
func (c *connection) newKubeconfig(ctx context.Context, request kubeconfigRequest) (*clientcmdapi.Config, error) {
	var members api.Members
	if err := c.get(ctx, api.MembersPath, &members); err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, err
	}
	csr, err := certutil.MakeCSR(key, &pkix.Name{CommonName: request.user, Organization: request.groups}, nil, nil)
	if err != nil {
		return nil, err
	}
	var signed api.ClientCertificate
	question := api.ClientCertificateRequest{Request: string(csr), TTL: metav1.Duration{Duration: request.life}}
	if err := c.post(ctx, api.ClientCertificatesPath, question, &signed); err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.AuthInfos[request.user] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte(signed.Certificate), ClientKeyData: keyPEM}
	for _, m := range members.Members {
		if m.APIAddr == "" || !m.Alive {
			continue
		}
		config.Clusters[m.Name] = &clientcmdapi.Cluster{Server: "https://" + m.APIAddr, CertificateAuthorityData: []byte(signed.CA)}
		config.Contexts[m.Name] = &clientcmdapi.Context{Cluster: m.Name, AuthInfo: request.user}
	}
	config.CurrentContext = members.Name
	return config, nil
}

// mergeKubeconfig adds to the file, which may have other clusters in it, and
// makes the new context the current one.
func mergeKubeconfig(file string, config *clientcmdapi.Config) error {
	merged, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return clientcmd.WriteToFile(*config, file)
	}
	if err != nil {
		return fmt.Errorf("cannot add to %s: %w", file, err)
	}
	maps.Copy(merged.Clusters, config.Clusters)
	maps.Copy(merged.AuthInfos, config.AuthInfos)
	maps.Copy(merged.Contexts, config.Contexts)
	merged.CurrentContext = config.CurrentContext
	return clientcmd.WriteToFile(*merged, file)
}
