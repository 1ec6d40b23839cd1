#!/bin/sh
# Fetches RRDtool's own test scripts, which `scripts.rs` runs, into a directory: from the source package in the pool of Debian's mirror.
# Only the scripts are unpacked. Does nothing when they are there.
set -u
directory=$1
archive=rrdtool_1.7.2.orig.tar.gz
digest=b26afc012dc0f2ade149bcb771e8b7d9b86922f5f9e4096c1c12e6d80061b61a
inside=rrdtool-1.x-1.7.2/tests

[ ! -e "$directory/functions" ] || exit 0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# apt fetches as a user of its own.
chmod 755 "$work"

is_right() { echo "$digest  $work/$archive" | sha256sum --check --status 2>/dev/null; }

# With apt's own program, which knows this machine's proxies and needs no other; or with curl.
fetch() {
  rm -f "$work/$archive"
  timeout 60 /usr/lib/apt/apt-helper -o Acquire::Retries=3 download-file "$1/$archive" "$work/$archive" "SHA256:$digest" >"$work/log" 2>&1
  is_right || timeout 60 curl -fsSL --retry 3 -o "$work/$archive" "$1/$archive" >>"$work/log" 2>&1
  is_right
}

# The pool that the package rrdtool comes from, then Debian's.
configured=$(apt-get download --print-uris rrdtool 2>/dev/null | sed -n "s|^'\(.*\)/[^/]*' .*|\1|p" | head -1)
for pool in $configured http://deb.debian.org/debian/pool/main/r/rrdtool https://deb.debian.org/debian/pool/main/r/rrdtool; do
  if fetch "$pool"; then
    mkdir "$work/scripts" && tar -xzf "$work/$archive" -C "$work/scripts" --no-same-owner --strip-components=2 "$inside" &&
      mkdir -p "$(dirname "$directory")" && rm -rf "$directory" && mv "$work/scripts" "$directory" && exit 0
  fi
done
echo "cannot fetch $archive from the pool of Debian's mirror: $(tail -1 "$work/log" 2>/dev/null)" >&2
exit 1
