#!/bin/sh
# Installs the packages of directory $1 over RRDtool's own, uses them, and removes them. For a mount namespace of its own:
# what is written stands in memory over this system's files, and goes with the namespace.
set -eu

if [ "${2-}" != inside ]; then
    place=$1
    mkdir "$place/overlay"
    mount -t tmpfs tmpfs "$place/overlay"
    mkdir "$place/overlay/upper" "$place/overlay/work" "$place/overlay/root"
    mount -t overlay overlay "$place/overlay/root" \
        -o "lowerdir=/,upperdir=$place/overlay/upper,workdir=$place/overlay/work"
    mkdir -p "$place/overlay/root/packages"
    cp "$place"/*.deb "$0" "$place/overlay/root/packages"
    mount -t proc proc "$place/overlay/root/proc"
    mount --rbind /dev "$place/overlay/root/dev"
    exec chroot "$place/overlay/root" sh /packages/inside.sh /packages inside
fi

fail() {
    echo "$*" >&2
    exit 1
}

# $1 as it should be, $2 as it is.
same() {
    [ "$1" = "$2" ] || fail "expected: $1
found: $2"
}

version() {
    rrdtool --version | head -n 1 | cut -d ' ' -f 1,2
}

# Which file a program loads as librrd.so.8.
library() {
    perl -MRRDs -e 'open my $maps, "<", "/proc/self/maps"; while (<$maps>) { if (m{(/\S*librrd\.so\S*)}) { print $1; last } }'
}

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cd /tmp
before=$(dpkg --verify rrdtool rrdcached librrd8)
theirs=$(library)
same "RRDtool 1.7.2" "$(version)"

apt-get install -qy --no-install-recommends /packages/*.deb >/tmp/apt.log 2>&1 || fail "$(cat /tmp/apt.log)"
same "RRDtool 1.9.0" "$(version)"
library=$(library)
case $library in */librrd.so.8.99.0) ;; *) fail "Perl loads $library" ;; esac
# Whatever is installed next runs ldconfig; librrd.so.8 must stay ours.
ldconfig
same "$library" "$(library)"
printf '#include <rrd.h>\n#include <stdio.h>\nint main(void) { return puts(rrd_strversion()) < 0; }\n' >version.c
grep -q '^Version: 1\.9\.0$' "$(find /usr/lib -name librrd.pc)" || fail "librrd.pc has no version"
cc -o version version.c -lrrd
same "1.9.0" "$(./version)"
roundel validate /etc/roundel/roundel.toml
id roundel >/dev/null
for page in roundel roundel-serve roundel-query; do
    [ -e "/usr/share/man/man1/$page.1.gz" ] || fail "no manual page $page"
done
systemd-analyze verify /lib/systemd/system/roundel.service

# The service's own command, as its user, until it answers.
install -d -o roundel -g roundel /var/lib/roundel /var/lib/roundel/rrd /run/roundel
setpriv --reuid roundel --regid roundel --clear-groups \
    roundel serve --config /etc/roundel/roundel.toml >/tmp/serve.log 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null' EXIT
export RRDCACHED_ADDRESS=unix:/run/roundel/rrdcached.sock
tries=0
until rrdtool list / >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || fail "no daemon: $(cat /tmp/serve.log)"
    sleep 0.1
done
cd /var/lib/roundel/rrd
rrdtool create kept.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:0:U RRA:LAST:0.5:1:10
perl -MRRDs -e 'RRDs::update("kept.rrd", "1000000010:42"); die RRDs::error if RRDs::error'
same "1000000010: 4.2000000000e+01" "$(rrdtool fetch kept.rrd LAST -s 1000000000 -e 1000000000 | tail -n 1)"
cd /tmp
# The package's mount.roundel, by mount(8).
if [ -c /dev/fuse ]; then
    mkdir mounted
    mount -t roundel unix:/run/roundel/rrdcached.sock /tmp/mounted
    roundel export --to exported kept.rrd >/tmp/export.log 2>&1 || fail "$(cat /tmp/export.log)"
    cmp mounted/kept.rrd exported/kept.rrd || fail "the mounted file is not the exported one"
    umount mounted
else
    echo "skip: there is no /dev/fuse to mount a store on"
fi
kill "$daemon"
wait "$daemon" || fail "the daemon did not stop well: $(cat /tmp/serve.log)"
trap - EXIT

apt-get remove -qy roundel roundel-rrdtool roundel-librrd8 roundel-librrd-dev >/tmp/apt.log 2>&1 || fail "$(cat /tmp/apt.log)"
same "RRDtool 1.7.2" "$(version)"
same "$theirs" "$(library)"
same "$before" "$(dpkg --verify rrdtool rrdcached librrd8)"
same "" "$(dpkg-divert --list 'roundel*')"
[ -d /var/lib/roundel/store ] || fail "removing took the store away"
