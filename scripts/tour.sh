#!/usr/bin/env bash
# A short tour of a running three-node cluster: write here, read there, kill the leader, go on.
# Prints each command as you would type it, and what it really answers. Fails when a step fails,
# cleans up after itself, and can be taken again.
#
#   scripts/tour.sh [--dir DIR]      DIR: the cluster's directory (default: .kontiki in the checkout)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

dir=$root/.kontiki
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) help; exit 0 ;;
    --dir=*) dir=$(absolute "${1#*=}"); shift ;;
    --dir)
      if [ -z "${2:-}" ]; then misuse "--dir needs a value"; fi
      dir=$(absolute "$2"); shift 2 ;;
    *) misuse "unknown argument $1" ;;
  esac
done

need_binaries
[ -s "$dir/kubeconfig" ] || die "no cluster in $(pretty "$dir"): make run, or scripts/cluster.sh up"
export KUBECONFIG=$dir/kubeconfig
scratch=$(mktemp -d)
export KUBECACHEDIR=$scratch/cache # not the caller's: another cluster may have had these ports

kubectl() { timeout 20 "$kubectl_bin" "$@"; } # a node that never answers is a step that fails
dir_flag=''
if [ "$dir" != "$root/.kontiki" ]; then dir_flag=" --dir $(pretty "$dir")"; fi
kontiki() { timeout 20 "$kontiki_bin" "$@"; }
cluster() { "$root/scripts/cluster.sh" "$@" --dir "$dir"; }

# The watch that runs in the background, and the end of it and of all else we made.
watch_pid=''
stop_watch() {
  [ -n "$watch_pid" ] || return 0
  kill "$watch_pid" 2>/dev/null || true
  wait "$watch_pid" 2>/dev/null || true
  watch_pid=''
}
leave() {
  local rc=$? i
  set +e
  stop_watch
  if [ $rc -ne 0 ]; then
    for i in 1 2 3; do
      kubectl --context n$i delete pod tour --ignore-not-found --request-timeout=5s >/dev/null 2>&1 && break
    done
    say "${me}: step $steps failed" >&2
  fi
  rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 130' INT TERM

# --- how it is told

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'; fi

steps=0
step() { steps=$((steps + 1)); printf '\n%s%d. %s%s\n' "$bold" "$steps" "$*" "$plain"; }

typed() { # COMMAND...: shows it as one would type it
  local word line='' name=$1
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_=/.:,@\&-]*) line="$line '$word'" ;;
      *) line="$line $word" ;;
    esac
  done
  if [ "$name" = cluster ]; then line=" scripts/cluster.sh${line# cluster}$dir_flag"; fi
  printf '   %s$%s%s\n' "$dim" "$line" "$plain"
}
indent() { sed 's/^/   /'; }
run() { typed "$@"; "$@" 2>&1 | indent; }

# await WHAT SECONDS COMMAND...: until it succeeds; its output is kept in $scratch/answer.
await() {
  local what=$1 end=$((SECONDS + $2)); shift 2
  until "$@" >"$scratch/answer" 2>&1; do
    if [ $SECONDS -ge $end ]; then
      indent <"$scratch/answer" >&2
      die "waited in vain for $what"
    fi
    sleep 0.1
  done
}

leader() { cluster status | awk '$4 == "leader" { print $1; found = 1; exit } END { exit !found }'; }
milliseconds() { local t=${EPOCHREALTIME/[.,]/}; printf '%s' "${t%???}"; }

# --- the tour

kubectl --context n1 delete pod tour --ignore-not-found >/dev/null # from a tour that was cut off

say "(kubectl is $(pretty "$kubectl_bin"), KUBECONFIG is $(pretty "$KUBECONFIG"))"
step "Three server processes are one cluster; each serves the whole API."
run cluster status
[ "$(cluster status | grep -c ' running  *ready ')" -ge 3 ] || die "the tour needs three ready nodes: scripts/cluster.sh up"

step "Create a Pod through node 1, read it through node 2."
run kubectl --context n1 run tour --image=nginx
run kubectl --context n2 get pod tour -o wide
say "   (Pending: there are no machines here to run it, only the API.)"

step "Watch it through node 3 while node 1 changes it."
watching=(kubectl --context n3 get pod tour --watch --output-watch-events --label-columns written-through)
typed "${watching[@]}" '&'
"$kubectl_bin" "${watching[@]:1}" >"$scratch/watch" 2>&1 &
watch_pid=$!
await "the watch's first event" 10 grep -q ADDED "$scratch/watch"
run kubectl --context n1 label pod tour written-through=n1
run kubectl --context n1 patch pod tour --type=merge --patch '{"metadata":{"labels":{"written-through":"n1-again"}}}'
await "both changes on node 3" 10 grep -Eq 'MODIFIED.* n1-again *$' "$scratch/watch"
stop_watch
say "   node 3 saw:"
indent <"$scratch/watch"

step "Kill the leader, without a warning."
await "a leader" 10 leader
dead=$(cat "$scratch/answer")
case $dead in n1) alive=n2 other=n3 ;; n2) alive=n3 other=n1 ;; *) alive=n1 other=n2 ;; esac
run cluster kill "${dead#n}"

step "Write through a node that was a follower, read through the other: the two elect a leader and go on."
writing=(kubectl --context "$alive" label pod tour --overwrite "written-through=$alive" "without=$dead")
typed "${writing[@]}"
began=$(milliseconds)
await "the write without $dead" 15 "${writing[@]}"
took=$(($(milliseconds) - began))
indent <"$scratch/answer"
say "   (accepted ${took} ms after the kill, election and kubectl's own start included)"
run kubectl --context "$other" get pod tour --show-labels

step "Bring $dead back on its old data: it catches up before it says ready."
run cluster start "${dead#n}"
run kubectl --context "$dead" get pod tour --show-labels
run kontiki members --context "$dead"

step "All three hold the same: the object's version is the index of its write in the raft log."
version=()
for i in 1 2 3; do
  reading=(kubectl --context "n$i" get pod tour -o 'jsonpath={.metadata.resourceVersion}')
  typed "${reading[@]}"
  version+=("$("${reading[@]}")")
  say "   ${version[${#version[@]}-1]}"
done
if [ "$(printf '%s\n' "${version[@]}" | sort -u | wc -l)" -ne 1 ]; then die "the nodes differ"; fi
run kubectl --context n1 delete pod tour

stop='make stop'
if [ -n "$dir_flag" ]; then stop="scripts/cluster.sh down$dir_flag"; fi
cat <<END

${bold}That was the tour. The cluster goes on running; now you:${plain}
   export KUBECONFIG=$(pretty "$KUBECONFIG")     # contexts n1, n2, n3
   $(pretty "$kubectl_bin") --context n2 get pods --all-namespaces
   $(pretty "$kontiki_bin") status --watch     # leader, members, rates, objects, disks, warnings
   scripts/cluster.sh status$dir_flag     # also kill, start, pause, resume
${bold}To stop it:${plain}
   $stop
END
