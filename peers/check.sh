#!/bin/sh
# `make check`: clippy reads all crates, and beside it, because each leaves a core idle now and then: formatting, the unit tests of the
# crates that changed since the last commit, the house rules and licences. The Makefile gives the target directory, cargo's options for
# all crates, and those of clippy. The script calls itself with the word "beside" in addition.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath "$1") everything=$2 lints=$3
nextest=$target/tools/bin/cargo-nextest
plan=$target/check

failed() {
  echo "$1" >> "$plan/failed"
}

if [ "${4:-}" = beside ]; then
  cargo fmt --all --check || failed "formatting (cargo fmt --all mends it)"
  for tests in "$plan"/*.json; do
    name=$(basename "$tests" .json)
    echo "tests of $name"
    ROUNDEL_SKIPS=$plan/skipped ROUNDEL_SEEDS=${ROUNDEL_SEEDS:-0.1x} "$nextest" nextest run --binaries-metadata "$tests" \
      --cargo-metadata "$plan/metadata" --no-tests pass || failed "tests of $name"
  done
  "$target/tools/bin/cargo-deny" check bans licenses sources || failed "cargo deny"
  exit
fi

. peers/beside.sh
rm -rf "$plan"
mkdir -p "$plan"

# Cargo lets one command at a time build, so the tests are built first. nextest then runs them without cargo, by these files.
plan_tests() {
  package=$1
  shift
  beside "$nextest" nextest list --cargo-quiet --locked -p "$package" "$@" --list-type binaries-only --message-format json \
    > "$plan/$package.json"
  wait $!
}
cargo metadata --format-version 1 --locked > "$plan/metadata"
plan_tests roundel-tidy
sh peers/changed.sh > "$plan/changed"
while read -r package targets; do
  # All tests of the house rules run in any case.
  [ "$package" != roundel-tidy ] || continue
  # shellcheck disable=SC2086
  plan_tests "$package" --all-features $targets
done < "$plan/changed"

: > "$plan/failed"
beside sh peers/check.sh "$1" "$everything" "$lints" beside > "$plan/output" 2>&1
others=$!
# shellcheck disable=SC2086
beside cargo clippy $everything -- $lints
wait $! || failed clippy
wait $others || failed "the script itself"
cat "$plan/output"
sh peers/skipped.sh "$plan/skipped"
[ -s "$plan/failed" ] || exit 0
sed 's/^/make check failed: /' "$plan/failed" >&2
exit 1
