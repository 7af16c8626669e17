#!/usr/bin/env bash
# Builds the peers that Kontiki is compared with, from the Go module proxy: kube-apiserver, the controllers
# that belong to it, and etcd. They go to bin/peer. The first time takes many minutes, later ones seconds.
#
#   scripts/peer/build.sh
#
# This folder is a module of its own, so that nothing here reaches the product's go.mod.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1:-} in
  '') ;;
  -h | --help) help; exit 0 ;;
  *) misuse "unknown argument $1" ;;
esac

cd "$root/scripts/peer"
export CGO_ENABLED=0
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) # v1.36.3
IFS=. read -r major minor _ <<<"${release#v}"
stamp=k8s.io/component-base/version
mkdir -p "$root/bin/peer"
started=$SECONDS
say "building kube-apiserver $release, kube-controller-manager and etcd"
go build -buildvcs=false -ldflags "-s -w -X $stamp.gitVersion=$release -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" \
  -o "$root/bin/peer/" ./etcd k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager
say "built them in $((SECONDS - started))s: $(pretty "$root/bin/peer")"
