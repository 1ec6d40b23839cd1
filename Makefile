# The commands of this project; `make` alone lists them.

# The peers that the tests talk to; `make bench` needs the second list too. Tests start their own daemons on
# other ports, so the ones that Debian starts are not used. msmtp-mta: smokeping needs a mailer, and this one is small.
TEST_PACKAGES := rrdtool rrdcached dc fonts-wqy-microhei librrds-perl collectd-core libyajl2 gmetad ganglia-monitor socat faketime iproute2 poppler-utils ghostscript gcc libc6-dev libssl-dev pkg-config locales librrd-dev valgrind debhelper fuse3 rsync \
  python3-rrdtool php-cli php-rrd lua5.3 lua-rrd ruby ruby-rrd tcl rrdtool-tcl mrtg snmpd munin munin-node msmtp-mta smokeping chromium curl openssl bindfs maven python3-venv prometheus graphite-carbon postgresql python3-whisper util-linux-extra vmtouch
BENCH_PACKAGES := victoria-metrics
# Whole applications, which only `make test-all` runs. mini-httpd: ganglia-webfrontend needs a web server, and this one is small; none is started.
APPS_PACKAGES := cacti dbconfig-no-thanks mariadb-server-core mariadb-client-core php php8.2-cgi php-intl php-gd ganglia-webfrontend mini-httpd \
  graphite-web libcgi-pm-perl libconfig-general-perl libregexp-common-perl libhtml-parser-perl
# The plugins of Telegraf that the tests use: with these it builds in 105 seconds of CPU, with 1.2 GB of modules (November 2026).
TELEGRAF_TAGS := custom,inputs.file,parsers.influx,outputs.influxdb,outputs.influxdb_v2,outputs.graphite,outputs.http,serializers.influx,serializers.prometheusremotewrite
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
SEED ?= 1
# New compilers have new lints: warnings fail with the compiler of the workspace only.
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
DENY := $(if $(findstring rustc $(RUST).,$(shell rustc -V)),-D warnings)
STATIC = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_SECONDS ?= 10

.PHONY: lab lab-full lab-staircase lab-scale help run cluster test test-all prometheus-peer apps-peers variants check bench bench-full gallery deb static oracle sim fuzz audit setup peers licences s3-peer page-setup page-shots bench-peers clean

help:
	@echo "make run           build, then serve ./var with this host's own metrics"
	@echo "make cluster       three brokers of Kafka, four nodes in two zones, an S3 server and a load, on this machine, until Ctrl-C"
	@echo "make test          install the peers (Debian packages), then run every test and build what check leaves out"
	@echo "make test-all      the same with root's tests, every random test with ten times the seeds, and whole applications: an hour"
	@echo "make check         formatting, clippy, unit tests, house rules, licences: what a change needs, in a minute"
	@echo "make bench         Roundel beside rrdcached, a few minutes; bench-full: the whole table"
	@echo "make bench AGAINST=DIR  beside another build of ours (a directory like target/release): bench/AGAINST.md"
	@echo "make gallery       the same graphs by Debian's rrdtool and by Roundel in one page: target/gallery/index.html"
	@echo "make lab           the five reports of docs/capacity.md and lab/README.md again, beside their peers: lab/RESULTS.md (root; 40 minutes)"
	@echo "make lab-full      larger, with the page-fault model's staircase and how far one machine goes: hours"
	@echo "make licences      write the list of crates in the executable again, after a change of dependencies"
	@echo "make page-shots    pictures of every page of the daemon, light and dark, wide and narrow: target/page/shots"
	@echo "make deb           Debian packages: the daemon, rrdtool's names, librrd.so.8; in target/deb"
	@echo "make static        executables that need no library of the system: target/$(STATIC)/release/{roundel,rrdtool}"
	@echo "make oracle        only the tests that compare with Debian's rrdtool"
	@echo "make sim SEED=n    one seed of the simulated disk"
	@echo "make fuzz          every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS))"
	@echo "make audit         known vulnerabilities in dependencies (needs a network)"
	@echo "make setup         what a developer needs once: cargo-deny and the peers"

# Built quickly: without Arrow and Parquet, and with less optimisation than packages and figures (`--release`).
run:
	@echo "Building the daemon and rrdtool. The first time takes two to four minutes on two cores."
	$(CARGO) build --profile quick --locked -p roundel --bins --no-default-features
	@mkdir -p var/rrd
	@echo
	@echo "Roundel keeps its store in ./var/store, names RRDs as in ./var/rrd, and records this host. In another terminal:"
	@echo "  cd $(CURDIR)/var/rrd"
	@echo "  export RRDCACHED_ADDRESS=unix:$(CURDIR)/var/rrdcached.sock PATH=$(abspath $(TARGET))/quick:\$$PATH"
	@echo "  rrdtool list -r /     # what there is"
	@echo "  rrdtool create test.rrd -s 10 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:360"
	@echo "The page, with live graphs of this machine: http://127.0.0.1:8080/"
	@echo "Ctrl-C stops it; nothing acknowledged is lost."
	@echo
	@[ -e roundel.toml ] || { $(TARGET)/quick/roundel snmp discover 127.0.0.1 --timeout 3 >/dev/null 2>&1 && printf '%s\n' '' \
	  "An SNMP agent answers on 127.0.0.1. To poll it too, stop this, and:" \
	  "  printf '[collect]\nhost = true\n\n[[snmp]]\ndevice = \"127.0.0.1\"\n' > roundel.toml && make run" ''; } &
	$(TARGET)/quick/roundel serve --base var/rrd --http 127.0.0.1:8080

# Of the peers only Kafka's broker (Java and Maven, once 44 MB) and, where there is Go, an S3 server.
cluster: s3-peer
	@sh crates/oracle/kafka/prepare.sh $(TARGET)/kafka
	$(CARGO) build --profile quick --locked -p roundel --bins --no-default-features --features kafka,backup
	@sh crates/oracle/kafka/cluster.sh $(TARGET)/kafka $(TARGET)/quick $(TARGET)/cluster

test: peers variants
	$(CARGO) test --workspace --locked

# What a change breaks rarely, so `make check` leaves it out: the build without default features, the fuzz targets, the
# documentation's links.
variants:
	$(CARGO) check --workspace --no-default-features --locked
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --locked
	RUSTDOCFLAGS='$(DENY) -A rustdoc::private_intra_doc_links' $(CARGO) doc --workspace --no-deps --locked

# What does not fit into the 25 minutes of `make test`.
test-all: peers apps-peers variants
	ROUNDEL_ROOT_TESTS=1 ROUNDEL_SEEDS=10x ROUNDEL_APPS=1 ROUNDEL_SPINE=$(SPINE) $(CARGO) test --workspace --locked

# Debian's package of spine cannot be configured beside dbconfig-no-thanks, so that its program is only taken out.
SPINE = $(abspath $(TARGET))/apps/spine/usr/sbin/spine
apps-peers:
	@missing=$$(for package in $(APPS_PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	if [ -n "$$missing" ]; then $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; fi
	@[ -x $(SPINE) ] || { mkdir -p $(TARGET)/apps && cd $(TARGET)/apps && apt-get download -q cacti-spine && \
	  dpkg-deb -x cacti-spine_*.deb spine; }

check: peers
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- $(DENY)
	$(CARGO) test --workspace --locked --lib --bins
	$(CARGO) test --locked -p roundel-tidy
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check bans licenses sources; \
	else echo "make check: cargo-deny is missing, licences are NOT checked; cargo install cargo-deny --locked"; fi

bench: bench-peers
	$(CARGO) build --release --locked -p roundel -p roundel-bench -p roundel-librrd
	$(CARGO) build --release --locked -p roundel-rrd-file --example direct
	$(TARGET)/release/bench compare --roundel $(TARGET)/release/roundel --mode quick $(if $(AGAINST),--against $(AGAINST))

bench-full: bench-peers
	$(CARGO) build --release --locked -p roundel -p roundel-bench -p roundel-librrd
	$(CARGO) build --release --locked -p roundel-rrd-file --example direct
	$(TARGET)/release/bench compare --roundel $(TARGET)/release/roundel --mode full $(if $(AGAINST),--against $(AGAINST))
	$(TARGET)/release/bench cluster --roundel $(TARGET)/release/roundel
	ROUNDEL_FAULTS=200 ROUNDEL_SEED=1 $(CARGO) test --locked -p roundel --test replication -- nodes_zones_and_brokers --nocapture

gallery: peers
	$(CARGO) build --release --locked -p roundel -p roundel-bench
	$(TARGET)/release/bench gallery --ours $(TARGET)/release/rrdtool --out $(TARGET)/gallery

deb:
	debian/rules clean binary DEBS=$(abspath $(TARGET))/deb
	debian/rules clean

# With an explicit --target, so that build-time code (procedural macros) is not affected.
static:
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --locked --target $(STATIC) -p roundel

oracle: peers
	$(CARGO) test --workspace --locked --test '*oracle*'

sim:
	ROUNDEL_SEED=$(SEED) $(CARGO) test --locked -p roundel-store --test simulation -- --nocapture

fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

audit:
	$(CARGO) deny check advisories

setup: peers
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked

# Installs only what is missing, so that nothing happens (and no network is needed) the second time. RRDtool's own test scripts come
# after the packages, when apt knows its mirror; without them, their test says that it was skipped.
peers: page-setup s3-peer
	@missing=$$(for package in $(TEST_PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	if [ -n "$$missing" ]; then $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; fi
	@command -v moto_server >/dev/null || [ -x $(TARGET)/moto/bin/moto_server ] || \
	  { python3 -m venv $(TARGET)/moto && $(TARGET)/moto/bin/pip install -q 'moto[server]==5.2.*'; }
	@[ -x $(TARGET)/graphite-web/bin/pip ] || { /usr/bin/python3 -m venv --system-site-packages $(TARGET)/graphite-web && \
	  $(TARGET)/graphite-web/bin/pip install -q graphite-web==1.1.10; }
	@[ -x $(TARGET)/push-peers/bin/python3 ] || { python3 -m venv $(TARGET)/push-peers && $(TARGET)/push-peers/bin/pip install -q influxdb-client statsd \
	  opentelemetry-sdk opentelemetry-exporter-otlp-proto-http; }
	@[ -x $(TARGET)/duckdb/bin/python ] || { python3 -m venv $(TARGET)/duckdb && $(TARGET)/duckdb/bin/pip install -q 'duckdb==2.0.*' 'pyarrow==26.*'; }
	@[ -x $(TARGET)/telegraf/telegraf ] || ! command -v go >/dev/null || GOBIN=$(abspath $(TARGET))/telegraf \
	  go install -tags $(TELEGRAF_TAGS) -ldflags '-s -w' github.com/influxdata/telegraf/cmd/telegraf@v1.37.2 || true
	@command -v s3s-fs >/dev/null || [ -x $(TARGET)/s3s-fs/bin/s3s-fs ] || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
	  $(CARGO) install -q s3s-fs --version 0.14.1 --features binary --locked --root $(TARGET)/s3s-fs --target-dir $(TARGET)/s3s-build || true
	@sh crates/oracle/kafka/prepare.sh $(TARGET)/kafka
	@sh crates/roundel/tests/rrdtool/fetch-scripts.sh $(TARGET)/rrdtool-scripts || true
	@! command -v go >/dev/null || (cd $${TMPDIR:-/tmp} && go mod download github.com/prometheus/prometheus@v0.316.0) || true

# An S3 server for backups. Without Go, tests have two others.
s3-peer:
	@command -v versitygw >/dev/null || [ -x $(TARGET)/versitygw/versitygw ] || ! command -v go >/dev/null || \
	  GOBIN=$(abspath $(TARGET))/versitygw go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 || true

# A Prometheus of the language's newest version, for the tests that compare answers; Debian's is older. Ten minutes on two cores.
prometheus-peer: peers
	@[ -x $(TARGET)/prometheus/prometheus ] || GOBIN=$(abspath $(TARGET))/prometheus go install -tags remove_all_sd github.com/prometheus/prometheus/cmd/prometheus@v0.316.0

# What the browser tests import: Playwright's driver, axe, the compiler of types. Outside the sources, as everything built.
page-setup:
	@cmp -s crates/roundel/tests/page/package-lock.json $(TARGET)/page/installed.json || { mkdir -p $(TARGET)/page && \
	  cp crates/roundel/tests/page/package.json crates/roundel/tests/page/package-lock.json $(TARGET)/page/ && \
	  npm ci --prefix $(TARGET)/page --no-audit --no-fund && cp $(TARGET)/page/package-lock.json $(TARGET)/page/installed.json; }

# The five reports again; what an interrupted run has measured stands. lab-full: the larger sizes, the page-fault model's whole staircase, and how
# far one machine goes.
LAB = $(SUDO) /usr/bin/python3 lab/run.py --roundel $(TARGET)/release/roundel --results $(TARGET)/lab --work $(TARGET)/lab/work
lab: peers
	$(CARGO) build --release --locked -p roundel --bin roundel
	$(LAB)

lab-full: peers lab-staircase lab-scale
	$(LAB) --full

# What was measured before stands: remove lab/staircase.json to measure all again.
lab-staircase: peers
	$(CARGO) build --release --locked -p roundel --bin roundel
	$(SUDO) /usr/bin/python3 lab/staircase.py --pages 0.7,2 --passes 48
	$(SUDO) /usr/bin/python3 lab/staircase.py --pages 3.5,4.2,5.2,6.2,7.2,8.2,9.5,12
	$(SUDO) /usr/bin/python3 lab/staircase.py --sides rrdcached:12 --pages 0.7,5,9.5 --warm 288
	$(SUDO) /usr/bin/python3 lab/staircase.py --sides no-advice --pages 9.5,28 --passes 24 --warm 24
	$(SUDO) /usr/bin/python3 lab/staircase.py --preset ganglia --rrds 1000 --pages 0.2,0.8,1.5,2.2,3,4 --warm 120 --passes 120
	$(SUDO) /usr/bin/python3 lab/staircase.py --preset collectd --rrds 1000 --pages 0.5,2,3,4.5,6,8,10,12,15 --warm 200 --passes 223
	$(SUDO) /usr/bin/python3 lab/staircase.py --preset cacti --rrds 1000 --pages 2,4.5,7,9,11,14,18 --warm 150 --passes 288
	/usr/bin/python3 lab/staircase_report.py --roundel $(TARGET)/release/roundel

# 16 GiB of memory, 20 GB of disk; no root.
lab-scale:
	$(CARGO) build --release --locked -p roundel -p roundel-bench --bin roundel --bin bench
	/usr/bin/python3 lab/scale.py --roundel $(TARGET)/release/roundel --bench $(TARGET)/release/bench --work $(TARGET)/lab

# The list of crates in the executable, for /licenses. A test of crates/tidy says when it is out of date.
licences:
	ROUNDEL_WRITE_LICENCES=1 $(CARGO) test --locked -p roundel-tidy --test licences

page-shots: peers
	ROUNDEL_PAGE_SHOTS=1 $(CARGO) test --workspace --locked --test page
	@echo "Pictures: $(TARGET)/page/shots"

bench-peers: peers
	@missing=$$(for package in $(BENCH_PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	if [ -n "$$missing" ]; then $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; fi

clean:
	$(CARGO) clean
	rm -rf bench/work
