// Command etcd is etcd's own server, built from its module, so that a comparison with kube-apiserver needs
// nothing but the Go module proxy.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
