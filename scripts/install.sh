#!/usr/bin/env bash
# Installs Kontiki on this machine: the program, a user, directories, a configuration file
# to edit, a systemd unit, and its manual (scripts/install/OPERATING.md). Run it again to upgrade; it keeps configuration and data.
#
#   scripts/install.sh [--bin FILE] [--root DIR]
#   scripts/install.sh --uninstall [--purge] [--root DIR]
#
#   --bin FILE     the program to install (default: bin/kontiki of this checkout)
#   --root DIR     install below DIR instead of / (an image, a test): no user, no systemctl
#   --uninstall    stop and remove program and unit; configuration and data stay
#   --purge        with --uninstall: also remove configuration, data and user
#
# It does not start the server: edit the configuration file first, it says how.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

bin=$kontiki_bin prefix='' action=install purge=
while [ $# -gt 0 ]; do
  case $1 in
    --bin | --root) [ $# -gt 1 ] || misuse "$1 needs a value" ;;&
    --bin) bin=$(absolute "$2"); shift ;;
    --root) prefix=$(absolute "$2"); shift ;;
    --uninstall) action=uninstall ;;
    --purge) purge=1 ;;
    -h | --help) help; exit 0 ;;
    *) misuse "unknown argument $1" ;;
  esac
  shift
done
[ -z "$purge" ] || [ $action = uninstall ] || misuse "--purge goes with --uninstall"

files=$root/scripts/install
program=$prefix/usr/local/bin/kontiki
config=$prefix/etc/kontiki/kontiki.env
unit=$prefix/etc/systemd/system/kontiki.service
manual=$prefix/usr/local/share/doc/kontiki/OPERATING.md
data=$prefix/var/lib/kontiki

[ -n "$prefix" ] || [ "$(id -u)" = 0 ] || die "run it as root: it makes a user and a systemd unit"

# systemd is asked only where it runs, and only about this machine.
systemd() { if [ -z "$prefix" ] && [ -d /run/systemd/system ]; then systemctl "$@"; fi; }

# put MODE FROM TO: copies a file unless it is there already, and says so.
put() {
  if cmp -s "$2" "$3"; then say "unchanged  $3"; return; fi
  install -D -m "$1" "$2" "$3.new" # a running program can't be written to; a rename can take its place
  mv -f "$3.new" "$3"
  say "installed  $3"
}

# own DIR: gives a directory to the server's user.
own() { if [ -z "$prefix" ]; then chown kontiki:kontiki "$1"; fi; }

install_all() {
  [ -x "$bin" ] || die "no program $bin: make build, or --bin FILE"
  "$bin" version >/dev/null || die "$bin does not run on this machine"
  if [ -z "$prefix" ] && ! id kontiki >/dev/null 2>&1; then
    useradd --system --home-dir "$data" --shell /usr/sbin/nologin kontiki
    say "made user  kontiki"
  fi
  put 755 "$bin" "$program"
  install -d -m 700 "$data" && own "$data"
  if [ -e "$config" ]; then
    say "kept       $config"
  else
    put 640 "$files/kontiki.env" "$config"
  fi
  if [ -z "$prefix" ]; then chown root:kontiki "$config"; fi
  put 644 "$files/OPERATING.md" "$manual"
  put 644 "$files/kontiki.service" "$unit"
  systemd daemon-reload
  systemd enable --quiet kontiki
  say ''
  say "Next: edit $config, then: systemctl restart kontiki"
  say "Then: export KUBECONFIG=$data/admin.kubeconfig"
}

uninstall_all() {
  if [ -e "$unit" ]; then systemd disable --now --quiet kontiki; fi
  rm -f "$unit" "$program"
  rm -rf "$(dirname "$manual")"
  systemd daemon-reload
  say "removed    $program, $unit"
  if [ -z "$purge" ]; then
    say "kept       $config, $data (--purge removes them)"
    return
  fi
  rm -rf "$data" "$(dirname "$config")"
  if [ -z "$prefix" ] && id kontiki >/dev/null 2>&1; then userdel kontiki; fi
  say "removed    $data, $(dirname "$config")"
}

"${action}_all"
