#!/bin/sh
# Runs what CI runs in a new root that has Debian's minimal system, the toolchains and nothing else, so that a package or a
# peer that no list names is missed. Needs root and the package debootstrap; takes as long as CI on a machine without caches.
#
#   peers/fresh.sh target                          .ci/run on a clone of HEAD
#   peers/fresh.sh target 'make peers check'       another command
#
# The root is TARGET/fresh and is removed after a success. What the command prints is also in TARGET/fresh.log.
set -eu
[ $# -eq 1 ] || [ $# -eq 2 ] || {
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
target=$(cd "$1" && pwd)
command=${2:-.ci/run}
repository=$(cd "$(dirname "$0")/.." && pwd)
root=$target/fresh
fail() {
  echo "peers/fresh.sh: $1" >&2
  exit 1
}
[ "$(id -u)" = 0 ] || fail "needs root, for chroot"
command -v debootstrap >/dev/null || fail "debootstrap is missing (make all-peers)"
. /etc/os-release

rm -rf "$root"
echo "a new root of Debian $VERSION_CODENAME in $root"
debootstrap --variant=minbase --include=ca-certificates,git,make,g++,cmake,procps "$VERSION_CODENAME" "$root" \
  http://deb.debian.org/debian >"$target/fresh.log" 2>&1 || fail "debootstrap failed; see $target/fresh.log"
# This machine's settings of the registries.
cp -r /etc/apt/apt.conf.d /etc/apt/sources.list* "$root/etc/apt/"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L --parents "$file" "$root"
done
for file in .npmrc .m2/settings.xml .cargo/config.toml .config/pip/pip.conf .config/go/env; do
  [ ! -e "$HOME/$file" ] || (cd "$HOME" && cp --parents "$file" "$root/root")
done
# The toolchains, without what they have cached.
mkdir -p "$root/root/.cargo" "$root/usr/lib/node_modules"
cp -r "$HOME/.cargo/bin" "$root/root/.cargo/"
cp "$(command -v node)" "$root/usr/bin/"
cp -r "$(dirname "$(command -v node)")/../lib/node_modules/npm" "$root/usr/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
mkdir -p "$root/root/.rustup" "$root/usr/local/go"
git clone -q "$repository" "$root/root/roundel"

# Mounts are made in a namespace of their own and vanish with the command.
export root command
goroot=$(go env GOROOT) rustup=${RUSTUP_HOME:-$HOME/.rustup} unshare --mount --propagation private sh -euc '
  for directory in dev proc sys; do mount --rbind /$directory "$root/$directory"; done
  mount --bind "$goroot" "$root/usr/local/go"
  mount --bind "$rustup" "$root/root/.rustup"
  exec chroot "$root" env -i HOME=/root TERM=dumb RUSTUP_AUTO_INSTALL=0 \
    PATH=/usr/local/go/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -c "cd /root/roundel && $command"' >>"$target/fresh.log" 2>&1 || fail "failed: $command; see $target/fresh.log, and $root"
tail -5 "$target/fresh.log"
rm -rf "$root"
