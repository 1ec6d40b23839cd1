#!/bin/sh
# Runs every fuzz target for SECONDS (default: 10) and stops at the first finding.
#
#   fuzz/run.sh [SECONDS] [TARGET...]
#
# Needs the nightly compiler and cargo-fuzz (rustup toolchain install nightly; cargo install cargo-fuzz --locked). The same entry points run under the
# stable compiler, driven by seeds, in the unit tests (`cargo test --workspace --all-features --lib fuzzing`).
set -eu
cd "$(dirname "$0")"
seconds=${1:-10}
[ $# -eq 0 ] || shift
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz/run.sh: cargo-fuzz is missing: rustup toolchain install nightly && cargo install cargo-fuzz" >&2
    exit 1
fi
targets=${*:-$(cargo +nightly fuzz list)}
for target in $targets; do
    echo "== $target"
    # A file that makes a target take seconds or gigabytes is a finding too.
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=0
done
