#!/bin/sh
# `make test`, after the peers are installed: all tests of the default tier, and beside them, at a lower priority, `make variants`, because
# the tests leave a fifth of two cores idle. The Makefile gives the target directory and cargo's options for all crates.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath "$1") everything=$2
. peers/beside.sh
nextest=$target/tools/bin/cargo-nextest
plan=$target/test
rm -rf "$plan"
mkdir -p "$plan"
env | grep -E '^ROUNDEL_(SEEDS?|EXECUTABLE|TEST_CLUSTER)=' | sed 's/^/make test: the environment has /'
if [ -n "${ROUNDEL_NO_SKIP:-}" ]; then
  cannot() {
    echo "make test: tests would be skipped, and ROUNDEL_NO_SKIP is set: $1" >&2
    exit 1
  }
  [ "$(id -u)" = 0 ] || cannot "mounts and network namespaces need root"
  [ -c /dev/fuse ] || cannot "there is no /dev/fuse"
  grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null || cannot "there is no IPv6 on the loopback device (::1)"
fi

# Cargo lets one command at a time build, so the tests are built first. nextest then runs them without cargo, by these files.
cargo metadata --format-version 1 --locked > "$plan/metadata"
# shellcheck disable=SC2086
beside "$nextest" nextest list --cargo-quiet $everything --list-type binaries-only --message-format json > "$plan/tests.json"
wait $!

# All files of the tests are in a directory of their own, so that what a test leaves is seen. Its name is short, because names of
# UNIX sockets must be. Some tests run as another user.
files=$(mktemp -d "${TMPDIR:-/tmp}/rt.XXXX")
chmod 1777 "$files"

# Removes what tests left that were stopped: mounts, network namespaces of processes that have ended, files.
remove_leftovers() {
  awk -v under="$files/" 'index($5, under) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r mount; do
    umount -l "$mount" || :
  done
  ip netns list 2>/dev/null | sed -n 's/^\(rdl-\([0-9]*\)-[^ ]*\).*/\1 \2/p' | while read -r name process; do
    [ -e "/proc/$process" ] || ip netns delete "$name" || :
  done
  # A daemon that is being stopped may still write.
  for second in 1 2 3 4 5; do
    rm -rf "$files" 2>/dev/null && return
    sleep "$second"
  done
  rm -rf "$files"
}
trap 'end_groups; remove_leftovers' EXIT

beside nice -n 10 make --no-print-directory variants > "$plan/variants" 2>&1
variants=$!
TMPDIR=$files ROUNDEL_SKIPS=$plan/skipped ROUNDEL_SEEDS=${ROUNDEL_SEEDS:-0.5x} beside "$nextest" nextest run \
  --binaries-metadata "$plan/tests.json" --cargo-metadata "$plan/metadata"
failed=
wait $! || failed="$failed tests"
if [ -z "$failed" ] && [ -n "$(ls -A "$files")" ]; then
  echo "make test: tests left files in $files:" >&2
  find "$files" | head -50 >&2
  failed="$failed leftovers"
fi
wait $variants || failed="$failed variants"
case $failed in *variants*) cat "$plan/variants" >&2 ;; esac
sh peers/skipped.sh "$plan/skipped"
[ -z "$failed" ] || {
  echo "make test failed:$failed" >&2
  exit 1
}
