#!/usr/bin/env bash
# Runs a kontiki cluster on this machine: N server processes on loopback, data on disk, TLS.
#
#   scripts/cluster.sh up         start every node that doesn't run; returns once all are ready
#   scripts/cluster.sh down       stop all nodes (SIGTERM, after 15 s SIGKILL); data stays
#   scripts/cluster.sh status     one line a node: name, running|paused|dead, ready|not-ready,
#                                 leader|follower|-, pid, API address
#   scripts/cluster.sh kill I     SIGKILL node I
#   scripts/cluster.sh start I    start node I again on its data; returns once it is ready
#   scripts/cluster.sh pause I    SIGSTOP node I
#   scripts/cluster.sh resume I   SIGCONT node I
#
#   --dir DIR      where the cluster lives (default: .kontiki in the checkout)
#   --nodes N      with up: number of nodes (default 3); a larger N later adds nodes
#   --api-port P   with up: node i serves the API on 127.0.0.1:P+i-1 (default 6443)
#   --wait S       with up and start: seconds to wait for ready nodes (default 60;
#                  0: don't wait, and leave DIR/kubeconfig as it is)
#
# Node i's peer port is P+10000+i-1, its gossip port (TCP and UDP) P+20000+i-1. So two clusters run
# side by side when their P are at least N apart (6443 and 6453, say), and not exactly 10000 or 20000.
#
# DIR/config remembers N and P. DIR/kubeconfig has the contexts n1..nN. DIR/pki is what all nodes share.
# DIR/n<i>/ holds pid, log and data. Programs: $KONTIKI_BIN and $KUBECTL_BIN, or else bin/ in the checkout.
# Servers inherit the environment, so KONTIKI_* variables reach them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# --- the command line

command='' node='' dir=$root/.kontiki nodes_asked='' port_asked='' wait_max=60
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) help; exit 0 ;;
    --*=*) flag=${1%%=*} value=${1#*=}; shift; set -- "$flag" "$value" "$@"; continue ;;
    --dir | --nodes | --api-port | --wait)
      if [ -z "${2:-}" ]; then misuse "$1 needs a value"; fi
      case $1:$2 in
        --dir:*) dir=$(absolute "$2") ;;
        *:*[!0-9]* | *:??????* | *:0?*) misuse "$1 takes a number, not '$2'" ;;
        --nodes:*) nodes_asked=$2 ;;
        --api-port:*) port_asked=$2 ;;
        --wait:*) wait_max=$2 ;;
      esac
      shift 2 ;;
    -*) misuse "unknown flag $1" ;;
    *)
      if [ -z "$command" ]; then command=$1
      elif [ -z "$node" ]; then node=${1#n}
      else misuse "unexpected argument $1"; fi
      shift ;;
  esac
done
case $command in
  up | down | status) [ -z "$node" ] || misuse "$command takes no node" ;;
  kill | start | pause | resume) [ -n "$node" ] || misuse "$command needs a node: $command 1" ;;
  '') misuse "which command? up, down, status, kill, start, pause, resume" ;;
  *) misuse "unknown command $command" ;;
esac
[ "$command" = up ] || [ -z "$nodes_asked$port_asked" ] || misuse "--nodes and --api-port go with up"

# --- the cluster's shape, remembered in DIR/config

remembered() { if [ -e "$dir/config" ]; then sed -n "s/^$1=//p" "$dir/config"; fi; }

# The nodes of the first up found the cluster together; those added later only join it.
nodes=$(remembered nodes) port=$(remembered api_port) founders=$(remembered founders)

shape() { # for up: takes what was asked, refuses what can't be
  if [ -n "$port" ] && [ -n "$port_asked" ] && [ "$port" != "$port_asked" ]; then
    die "$(pretty "$dir") is a cluster at port $port: give another --dir, or remove it first"
  fi
  if [ -n "$nodes" ] && [ -n "$nodes_asked" ] && [ "$nodes_asked" -lt "$nodes" ]; then
    die "$(pretty "$dir") has $nodes nodes, $nodes_asked would be fewer: remove members first"
  fi
  nodes=${nodes_asked:-${nodes:-3}} port=${port_asked:-${port:-6443}}
  founders=${founders:-$nodes}
  if [ "$nodes" -lt 1 ]; then misuse "--nodes must be at least 1"; fi
  if [ "$port" -lt 1 ] || [ $((port + 20000 + nodes - 1)) -gt 65535 ]; then
    misuse "--api-port must be from 1 to $((45536 - nodes)): gossip ports are 20000 above it"
  fi
  mkdir -p "$dir"
  printf 'nodes=%s\napi_port=%s\nfounders=%s\n' "$nodes" "$port" "$founders" >"$dir/config.new"
  mv "$dir/config.new" "$dir/config"
}

api() { printf '127.0.0.1:%s' $((port + $1 - 1)); }
peer() { printf '127.0.0.1:%s' $((port + 10000 + $1 - 1)); }
gossip() { printf '127.0.0.1:%s' $((port + 20000 + $1 - 1)); }
others() { # I: the gossip addresses of all nodes but this one
  local i list=''
  for ((i = 1; i <= nodes; i++)); do
    if [ "$i" -ne "$1" ]; then list=$list,$(gossip "$i"); fi
  done
  printf '%s' "${list#,}"
}

# --- one node's process

# pid_of I: its pid if it is alive. A pid file may outlive its process and the pid may be another's
# by now, so the process must have this node's data directory in its command line.
pid_of() {
  local pid=''
  [ -s "$dir/n$1/pid" ] && read -r pid <"$dir/n$1/pid" || return 1
  if [ -r "/proc/$pid/cmdline" ]; then
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "--data-dir=$dir/n$1/data" || return 1
  else
    ps -ww -o args= -p "$pid" 2>/dev/null | grep -qF -- "--data-dir=$dir/n$1/data " || return 1
  fi
  printf '%s' "$pid"
}

state_of() { # I: running, paused or dead
  local pid
  pid=$(pid_of "$1") || { printf dead; return; }
  case $(ps -o stat= -p "$pid" 2>/dev/null || sed -n 's/^State:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null) in
    T* | t*) printf paused ;;
    *) printf running ;;
  esac
}

launch() { # I: starts it, doesn't wait
  local i=$1 home=$dir/n$1 entry=()
  if [ "$i" -le "$founders" ]; then entry+=(--bootstrap-expect="$founders"); fi
  if [ "$founders" -gt 1 ] || [ "$i" -gt 1 ]; then entry+=(--peers="$(others "$i")"); fi # who founds alone joins nobody
  mkdir -p "$home"
  : >>"$home/log"
  wc -c <"$home/log" | tr -d ' ' >"$home/log.start" # where this start's lines begin
  set -m # a process group of its own: a ^C in the terminal is not for the servers
  "$kontiki_bin" server --name="n$i" --data-dir="$home/data" --pki-dir="$dir/pki" \
    --api-addr="$(api "$i")" --peer-addr="$(peer "$i")" --gossip-addr="$(gossip "$i")" \
    "${entry[@]}" </dev/null >>"$home/log" 2>&1 &
  printf '%s\n' $! >"$home/pid"
  disown
  set +m
  while gone "$i" && kill -0 $! 2>/dev/null; do sleep 0.01; done # until it is the server, not yet our fork
}

gone() { ! pid_of "$1" >/dev/null; }
await_gone() { # SECONDS I...: 1 if one is still there then
  local end=$((SECONDS + $1)) i; shift
  for i in "$@"; do
    until gone "$i"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done
  done
}

# --- what the cluster says of itself

ask() { # I PATH: GET it from that node alone
  "$kubectl_bin" --kubeconfig "$dir/kubeconfig" --context "n$1" --request-timeout=2s get --raw "$2" 2>/dev/null
}

is_ready() { ask "$1" /readyz >/dev/null; }

role_of() { # I, by its own account
  local leader
  leader=$(ask "$1" /kontiki/v1/members | tr -d ' \n' | sed -n 's/.*"leader":"\([^"]*\)".*/\1/p') || true
  case $leader in '') printf -- - ;; "n$1") printf leader ;; *) printf follower ;; esac
}

# write_kubeconfig: contexts n1..nN with the credentials from the first admin.kubeconfig there is.
write_kubeconfig() {
  local i admin='' ca='' user=''
  for ((i = 1; i <= nodes; i++)); do
    admin=$dir/n$i/data/admin.kubeconfig
    [ ! -s "$admin" ] || break
  done
  view() { "$kubectl_bin" --kubeconfig "$admin" config view --raw --flatten -o "jsonpath=$1" 2>/dev/null; }
  ca=$(view '{.clusters[0].cluster.certificate-authority-data}') || return 1
  user=$(view '{.users[0].user}') || return 1
  [ -n "$ca" ] && [ -n "$user" ] || return 1
  (
    umask 077
    {
      printf 'apiVersion: v1\nkind: Config\ncurrent-context: n1\n'
      printf 'users:\n- {name: admin, user: %s}\n' "$user"
      printf 'clusters:\n'
      for ((i = 1; i <= nodes; i++)); do
        printf -- '- {name: n%s, cluster: {server: "https://%s", certificate-authority-data: %s}}\n' "$i" "$(api "$i")" "$ca"
      done
      printf 'contexts:\n'
      for ((i = 1; i <= nodes; i++)); do printf -- '- {name: n%s, context: {cluster: n%s, user: admin}}\n' "$i" "$i"; done
    } >"$dir/kubeconfig.new"
  )
  mv "$dir/kubeconfig.new" "$dir/kubeconfig"
}

# --- waiting for nodes

this_log() { tail -c +$(($(cat "$dir/n$1/log.start") + 1)) "$dir/n$1/log"; } # I: its lines since its start

# await_ready I...: says what happens while it waits. 1: a node died, or time is up; says why.
await_ready() {
  local end=$((SECONDS + wait_max)) since=$SECONDS told=$SECONDS waiting=("$@") still i have_config=''
  while [ ${#waiting[@]} -gt 0 ]; do
    still=()
    for i in "${waiting[@]}"; do
      if gone "$i"; then
        { say "n$i stopped: $(this_log "$i" | awk '/^(panic|fatal error):/ && !p { p = $0 } { l = $0 } END { print p ? p : l }')"
          say "its log: $(pretty "$dir/n$i/log")"; } >&2
        return 1
      fi
      [ -n "$have_config" ] || ! write_kubeconfig || have_config=yes
      if [ -n "$have_config" ] && is_ready "$i"; then
        say "n$i ready after $((SECONDS - since))s  https://$(api "$i")"
      else
        still+=("$i")
      fi
    done
    waiting=(${still[@]+"${still[@]}"})
    [ ${#waiting[@]} -gt 0 ] || return 0
    if [ $SECONDS -ge $end ]; then
      for i in "${waiting[@]}"; do
        { say "n$i is not ready after ${wait_max}s; the end of $(pretty "$dir/n$i/log"):"; this_log "$i" | tail -n 12 | sed 's/^/  /'; } >&2
      done
      return 1
    fi
    if [ $((SECONDS - told)) -ge 5 ]; then
      told=$SECONDS
      say "waiting for ${waiting[*]/#/n}, $((SECONDS - since))s"
    fi
    sleep 0.1
  done
}

# --- the commands

known() { [ -n "$nodes" ] || die "no cluster in $(pretty "$dir"): scripts/cluster.sh up"; }
known_node() {
  known
  case $node in *[!0-9]* | '' | 0*) misuse "a node is a number from 1 to $nodes, not '$node'" ;; esac
  if [ ${#node} -gt 5 ] || [ "$node" -gt "$nodes" ]; then die "there is no n$node, only n1 to n$nodes"; fi
}
signal() { # NAME WANTED-STATE...: sends it to the node if it is in that state
  local name=$1 is; shift
  is=$(state_of "$node")
  case " $* " in *" $is "*) kill -s "$name" "$(pid_of "$node")" ;; *) die "n$node is $is" ;; esac
}

up() {
  need_binaries
  shape
  local i started=() all=()
  for ((i = 1; i <= nodes; i++)); do
    all+=("$i")
    case $(state_of "$i") in
      paused) die "n$i is paused: scripts/cluster.sh resume $i" ;;
      dead) started+=("$i") ;;
      running)
        case $(readlink "/proc/$(pid_of "$i")/exe") in
          *' (deleted)') say "n$i still runs a program that has been rebuilt since: kill $i and start $i renews it" ;;
        esac ;;
    esac
  done
  say "starting ${#started[@]} of $nodes nodes in $(pretty "$dir")"
  for i in ${started[@]+"${started[@]}"}; do launch "$i"; done
  [ "$wait_max" -gt 0 ] || return 0
  if ! await_ready "${all[@]}"; then
    stop_nodes ${started[@]+"${started[@]}"}
    die "up failed; what it started is stopped again"
  fi
}

stop_nodes() { # I...
  local i pid
  for i in "$@"; do
    pid=$(pid_of "$i") || continue
    kill -s TERM "$pid" 2>/dev/null || true
    kill -s CONT "$pid" 2>/dev/null || true # a paused process hears TERM only then
  done
  if ! await_gone 15 "$@"; then # a server gives its clients 10
    for i in "$@"; do
      pid=$(pid_of "$i") || continue
      say "n$i did not stop in 15s: killing it" >&2
      kill -s KILL "$pid" 2>/dev/null || true
    done
    await_gone 10 "$@" || die "a node survives SIGKILL: is its disk hanging?"
  fi
}

down() {
  [ -n "$nodes" ] || { say "no cluster in $(pretty "$dir")"; return 0; }
  local i all=()
  for ((i = 1; i <= nodes; i++)); do
    if ! gone "$i"; then all+=("$i"); fi
  done
  stop_nodes ${all[@]+"${all[@]}"}
  say "stopped ${#all[@]} nodes; data stays in $(pretty "$dir")"
}

status() {
  known
  need_binaries
  local i state ready role
  for ((i = 1; i <= nodes; i++)); do
    state=$(state_of "$i") ready=not-ready role=-
    if [ "$state" = running ]; then
      if is_ready "$i"; then ready=ready; fi
      role=$(role_of "$i")
    fi
    printf '%-4s %-8s %-10s %-9s %-8s https://%s\n' "n$i" "$state" "$ready" "$role" "$(pid_of "$i" || printf -- -)" "$(api "$i")"
  done
}

start() {
  known_node
  need_binaries
  case $(state_of "$node") in
    paused) die "n$node is paused: scripts/cluster.sh resume $node" ;;
    dead) launch "$node" ;;
  esac
  [ "$wait_max" -gt 0 ] || return 0
  await_ready "$node" || exit 1
}

crash() {
  known_node
  local pid
  pid=$(pid_of "$node") || pid=-
  signal KILL running paused
  await_gone 10 "$node" || die "n$node survives SIGKILL: is its disk hanging?"
  say "n$node killed (kill -9 $pid)"
}
pause() { known_node; signal STOP running; say "n$node paused"; }
resume() { known_node; signal CONT paused; say "n$node resumed"; }

case $command in
  kill) crash ;;
  *) "$command" ;;
esac
