#!/usr/bin/env bash
# Builds bin/kontiki and bin/kubectl, both straight from go.mod, and shows how far it is:
# the first build compiles a good part of Kubernetes and takes minutes, later ones seconds.
#
#   scripts/build.sh
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

case ${1:-} in
  '') ;;
  -h | --help) help; exit 0 ;;
  *) misuse "unknown argument $1" ;;
esac

cd "$root"
command -v go >/dev/null || die "go is not in PATH"
export CGO_ENABLED=0 # static binaries

packages=(./cmd/kontiki k8s.io/kubernetes/cmd/kubectl)
flags=()
# Go stamps the commit into the binary, and fails where git can't tell it (no git, another user's checkout).
git rev-parse --quiet --verify HEAD >/dev/null 2>&1 || flags+=(-buildvcs=false)

# progress DOING TOTAL: counts the lines that name one thing done, passes all others through.
# One line that moves on a terminal; a new line every few seconds elsewhere.
progress() {
  local doing=$1 total=$2 done=0 start=$SECONDS shown=$SECONDS line rc
  while :; do
    rc=0
    IFS= read -r -t 5 line || rc=$?
    if [ $rc -gt 128 ]; then line=; elif [ $rc -ne 0 ]; then break; fi # 5 s of silence; the end
    case $line in
      '') ;;
      'go: downloading '*) done=$((done + 1)) line=${line#go: downloading } ;;
      *[!A-Za-z0-9._/~-]*) if [ -t 1 ]; then printf '\r\033[K'; fi; printf '%s\n' "$line" >&2; continue ;;
      *) done=$((done + 1)) ;;
    esac
    if [ -t 1 ]; then
      printf '\r\033[K%s %s%s  %ds  %.50s' "$doing" "$done" "${total:+/$total}" $((SECONDS - start)) "$line"
    elif [ $((SECONDS - shown)) -ge 5 ]; then
      shown=$SECONDS
      printf '%s %s%s  %ds\n' "$doing" "$done" "${total:+/$total}" $((SECONDS - start))
    fi
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
}

# What is there to compile? (This downloads the modules when they are missing.)
stale=$(mktemp)
trap 'rm -f "$stale"' EXIT
{ go list ${flags[@]+"${flags[@]}"} -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${packages[@]}" 2>&1 >"$stale"; } |
  progress "downloading modules:" ''
total=$(grep -c . "$stale" || true)

# kubectl compares its own release with the server's; upstream stamps it in like this, too.
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) # v1.36.3
version=k8s.io/component-base/version
IFS=. read -r major minor _ <<<"${release#v}"
ldflags="-s -w -X $version.gitVersion=$release -X $version.gitMajor=$major -X $version.gitMinor=$minor"
# A goroutine's first stack is as large as those before it came to need. Without that each request's grows
# two or three times, and to copy it is a twentieth of the CPU of a get or a create. There is no //go:debug
# for this setting of the runtime's; the variable is the one that the go command sets for those that there are.
ldflags+=" -X runtime.godebugDefault=adaptivestackstart=1"

mkdir -p bin
started=$SECONDS
go build -v ${flags[@]+"${flags[@]}"} -ldflags "$ldflags" -o bin/ "${packages[@]}" 2>&1 |
  progress "compiling packages:" "$total"
say "built bin/kontiki and bin/kubectl in $((SECONDS - started))s"
