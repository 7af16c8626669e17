# What the scripts share: where things are, and how to say and fail.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kontiki_bin=${KONTIKI_BIN:-$root/bin/kontiki}
kubectl_bin=${KUBECTL_BIN:-$root/bin/kubectl}
me=${0##*/}

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$me" "$*" >&2; exit 1; }
misuse() { printf '%s: %s (%s --help)\n' "$me" "$*" "$me" >&2; exit 2; }

# help prints the calling script's header comment.
help() { sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0"; }

need_binaries() {
  local bin
  for bin in "$kontiki_bin" "$kubectl_bin"; do
    [ -x "$bin" ] || die "no program $bin: make build"
  done
}

# absolute DIR: the same directory as a full path, also when it doesn't exist yet.
absolute() { case $1 in /*) printf '%s\n' "${1%/}" ;; *) printf '%s\n' "$PWD/${1%/}" ;; esac; }

# pretty PATH: as a person would type it, relative to where they stand.
pretty() { printf '%s\n' "${1#"$PWD"/}"; }
