package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kontiki/cluster/pki"
)

const (
	adminUser = "kubernetes-admin"
	adminLife = 365 * 24 * time.Hour
	adminFile = "admin.kubeconfig" // in the data directory
)

// ensureKubeconfig writes the administrator's kubeconfig, unless the file is
// already good for this cluster, node and address. Its one context is named
// after the node.
func ensureKubeconfig(file string, root *pki.Cluster, name, address string) error {
	server := "https://" + address
	if old, err := clientcmd.LoadFromFile(file); err == nil && stillGood(old, root, name, server) {
		return nil
	}
	return writeKubeconfig(file, root, name, server)
}

func writeKubeconfig(file string, root *pki.Cluster, name, server string) error {
	pair, err := root.IssueClient(adminUser, []string{user.SystemPrivilegedGroup}, adminLife)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: root.CAPEM()}
	config.AuthInfos[adminUser] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.CertPEM, ClientKeyData: pair.KeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: adminUser}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, file)
}

func stillGood(config *clientcmdapi.Config, root *pki.Cluster, name, server string) bool {
	cluster := config.Clusters[name]
	if cluster == nil || cluster.Server != server || !bytes.Equal(cluster.CertificateAuthorityData, root.CAPEM()) {
		return false
	}
	cert, err := adminCertificate(config)
	return err == nil && root.Issued(cert) && !root.Due(cert)
}

// adminCertificate is the one in an administrator's kubeconfig, if it has its key.
func adminCertificate(config *clientcmdapi.Config) (*x509.Certificate, error) {
	admin := config.AuthInfos[adminUser]
	if admin == nil {
		return nil, fmt.Errorf("it has no user %s", adminUser)
	}
	pair, err := tls.X509KeyPair(admin.ClientCertificateData, admin.ClientKeyData)
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}
