#!/bin/sh
# `make test`, after the peers are installed: `make variants`, then all tests of the default tier. The Makefile gives the target directory
# and cargo's options for all crates.
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

# The directories of the tests (one-test.sh) are in one that is removed with all that a stopped test leaves. Its name is short because
# the paths of UNIX sockets are limited. Some tests run as another user and must write there.
temporary=$(realpath "${TMPDIR:-/tmp}")

# Unmounts what is mounted below a directory.
unmount_below() {
  awk -v under="$1/" 'index($5, under) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r mount; do
    umount -l "$mount" || :
  done
}

# What earlier runs have left because they were killed: a run locks its directory.
for stale in "$temporary"/rt.????; do
  flock --nonblock "$stale" true 2>/dev/null || continue
  unmount_below "$stale"
  rm -rf --one-file-system "$stale" || :
done

files=$(mktemp -d "$temporary/rt.XXXX")
exec 8<"$files"
flock 8
chmod 1777 "$files"

# Removes the leftovers of stopped tests: mounts, network namespaces of processes that have ended, files.
remove_leftovers() {
  unmount_below "$files"
  ip netns list 2>/dev/null | sed -n 's/^\(rdl-\([0-9]*\)-[^ ]*\).*/\1 \2/p' | while read -r name process; do
    [ -e "/proc/$process" ] || ip netns delete "$name" || :
  done
  # A daemon that is being stopped may still write.
  for second in 1 2 3 4 5; do
    rm -rf --one-file-system "$files" 2>/dev/null && return
    sleep "$second"
  done
  rm -rf --one-file-system "$files"
}
trap "trap '' INT TERM HUP; end_groups; remove_leftovers" EXIT

failed=
beside make --no-print-directory variants
wait $! || failed="$failed variants"
# The options that the environment could replace (NEXTEST_RETRIES, NEXTEST_PROFILE) are given.
# shellcheck disable=SC2086
TMPDIR=$files ROUNDEL_SKIPS=$plan/skipped ROUNDEL_SEEDS=${ROUNDEL_SEEDS:-0.5x} beside "$nextest" nextest run --cargo-quiet --profile default --retries 0 $everything
wait $! || failed="$failed tests"
sh peers/skipped.sh "$plan/skipped"
[ -z "$failed" ] || {
  echo "make test failed:$failed" >&2
  exit 1
}
