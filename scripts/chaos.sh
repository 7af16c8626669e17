#!/usr/bin/env bash
# Breaks a cluster of real servers in every way there is a fault for, and checks what clients saw.
#
#   scripts/chaos.sh               every fault once, in random order
#   --duration D                   go on for that long (10m, 2h), with random pairs of faults
#   --seed N                       repeat what a run with this seed did
#   --faults A,B,C+D               only these, in this order; C+D is two at once
#   --nodes N                      size of the cluster (default 3)
#   --list                         name the faults, and what they cover
#   --dir DIR                      where histories, logs and disks of failed runs stay
#   --help                         the rest
#
# With root on Linux each server has a network and a disk of its own. Otherwise all share loopback, and the
# faults of network and disk size are left out.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

case ${1:-} in -h | --help) help ;; esac

cd "$root"
command -v go >/dev/null || die "go is not in PATH"
export CGO_ENABLED=0
flags=()
git rev-parse --quiet --verify HEAD >/dev/null 2>&1 || flags+=(-buildvcs=false)
go build ${flags[@]+"${flags[@]}"} -tags faults -o bin/kontiki-faults ./cmd/kontiki
go build ${flags[@]+"${flags[@]}"} -o bin/chaos ./scripts/chaos
exec bin/chaos --binary bin/kontiki-faults "$@"
