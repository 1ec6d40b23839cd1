#!/bin/sh
# Prints the packages that have files which are changed or new since the last commit, each with cargo's options for its unit tests.
set -eu
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null || {
  echo "make check asks git which crates have changed, and this is no clone; make test runs all tests" >&2
  exit 1
}
# Of a tree inside of another repository, git prints the paths from that repository's root.
prefix=$(git rev-parse --show-prefix)
changes=$(git status --porcelain --untracked-files=all --no-renames -- .)
printf '%s\n' "$changes" | cut -c4- | sed "s|^\(\"\{0,1\}\)$prefix|\1|" |
  sed -n 's|^"\{0,1\}\(crates/[^/]*\)/.*|\1|p' | sort -u | while read -r crate; do
  # A crate that was removed has no tests.
  [ -e "$crate/Cargo.toml" ] || continue
  package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$crate/Cargo.toml" | head -1)
  # Cargo refuses `--lib` for a package without a library. `--bins` would take executables, too, that are declared to have no tests.
  executable=$(sed -n '/^\[\[bin\]\]/{n;s/^name = "\(.*\)"/\1/p;}' "$crate/Cargo.toml" | head -1)
  if [ -e "$crate/src/lib.rs" ]; then echo "$package --lib"; else echo "$package --bin $executable"; fi
done
