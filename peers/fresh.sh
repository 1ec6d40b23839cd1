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
cargo_home=${CARGO_HOME:-$HOME/.cargo}
npm=$(dirname "$(command -v node || fail "node is missing")")/../lib/node_modules/npm
[ -d "$npm" ] || fail "npm is not in $npm, where Node.js itself installs it"
. /etc/os-release

# One at a time: the second would remove the first one's root.
exec 9>"$target/fresh.lock"
flock --nonblock 9 || fail "another one runs in $root"
rm -rf "$root"
echo "a new root of Debian $VERSION_CODENAME in $root"
debootstrap --variant=minbase --include=ca-certificates,git,make "$VERSION_CODENAME" "$root" \
  http://deb.debian.org/debian >"$target/fresh.log" 2>&1 || fail "debootstrap failed; see $target/fresh.log"
# This machine's settings of the registries.
mkdir -p "$root/root/.cargo"
cp -r /etc/apt/apt.conf.d /etc/apt/sources.list* "$root/etc/apt/"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L --parents "$file" "$root"
done
# The authorities that this machine trusts in addition; Java's list is made of them when it is installed.
cp -rT /usr/local/share/ca-certificates "$root/usr/local/share/ca-certificates"
chroot "$root" update-ca-certificates >>"$target/fresh.log" 2>&1
[ ! -e "$cargo_home/config.toml" ] || cp "$cargo_home/config.toml" "$root/root/.cargo/"
for file in .npmrc .m2/settings.xml .config/pip/pip.conf .config/go/env; do
  [ ! -e "$HOME/$file" ] || (cd "$HOME" && cp --parents "$file" "$root/root")
done
# The toolchains, without what they have cached.
mkdir -p "$root/usr/lib/node_modules"
cp -r "$cargo_home/bin" "$root/root/.cargo/"
cp "$(command -v node)" "$root/usr/bin/"
cp -r "$npm" "$root/usr/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
mkdir -p "$root/root/.rustup" "$root/usr/local/go"
git clone -q "$repository" "$root/root/roundel"

# Mounts and processes are in namespaces of their own and vanish with the command.
# npm and pip do not trust the system's authorities, unless this machine tells them to: a proxy may be one.
export root command authorities=/etc/ssl/certs/ca-certificates.crt
goroot=$(go env GOROOT) rustup=${RUSTUP_HOME:-$HOME/.rustup} unshare --mount --propagation private --pid --fork --kill-child sh -euc '
  for directory in dev sys; do mount --rbind /$directory "$root/$directory"; done
  mount -t proc proc "$root/proc"
  mount --bind "$goroot" "$root/usr/local/go"
  mount --bind "$rustup" "$root/root/.rustup"
  exec chroot "$root" env -i HOME=/root TERM=dumb RUSTUP_AUTO_INSTALL=0 ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS="$authorities"} ${PIP_CERT:+PIP_CERT="$authorities"} \
    PATH=/usr/local/go/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -c "cd /root/roundel && $command"' >>"$target/fresh.log" 2>&1 || fail "failed: $command; see $target/fresh.log, and $root"
tail -5 "$target/fresh.log"
rm -rf "$root"
