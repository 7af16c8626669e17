package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kontiki/cluster/pki"
)

const (
	adminUser    = "kubernetes-admin"
	adminLife    = 365 * 24 * time.Hour
	adminRenewal = 30 * 24 * time.Hour // before the end
)

// ensureKubeconfig writes the administrator's kubeconfig, unless the file is
// already good for this cluster, node and address. Its one context is named
// after the node.
func ensureKubeconfig(file string, root *pki.Cluster, name, address string) error {
	server := "https://" + address
	if old, err := clientcmd.LoadFromFile(file); err == nil && stillGood(old, root, name, server) {
		return nil
	}
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
	cluster, admin := config.Clusters[name], config.AuthInfos[adminUser]
	if cluster == nil || admin == nil || cluster.Server != server || !bytes.Equal(cluster.CertificateAuthorityData, root.CAPEM()) {
		return false
	}
	pair, err := tls.X509KeyPair(admin.ClientCertificateData, admin.ClientKeyData)
	if err != nil {
		return false
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	return err == nil && time.Until(cert.NotAfter) > adminRenewal
}
