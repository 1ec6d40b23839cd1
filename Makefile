# The commands of this project; `make` alone lists them.

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
CARGO ?= cargo
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),$(CARGO_BUILD_TARGET_DIR),target))
# Also where cargo's configuration has another one.
export CARGO_TARGET_DIR := $(TARGET)
ifneq ($(words $(TARGET) $(CURDIR)),2)
$(error the paths "$(CURDIR)" and "$(TARGET)" must be without spaces)
endif
# cargo-nextest and cargo-deny, which `peers/install.sh` puts here.
TOOLS := $(TARGET)/tools/bin
# Every feature is compiled wherever something is tested, so that nothing stops being compiled.
EVERYTHING := --workspace --all-features --locked
NEXTEST = env ROUNDEL_SKIPS=$(TARGET)/skipped.txt $(TOOLS)/cargo-nextest nextest run --cargo-quiet
SEED ?= 1
# New compilers have new lints: warnings fail with the compiler of the workspace only.
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
DENY = $(if $(findstring rustc $(RUST).,$(shell rustc -V)),-D warnings)
STATIC = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_SECONDS ?= 10
ROUNDS ?= 3
HTTP ?= 127.0.0.1:8080

# Two targets that install peers, or build, would be in each other's way; cargo uses all cores by itself.
.NOTPARALLEL:

.PHONY: rust doc debhelper features lab lab-full lab-staircase lab-scale help run cluster test test-all root prometheus-peer all-peers variants check bench bench-full gallery deb static oracle sim fuzz audit setup tools peers licences page-shots soak clean

help:
	@echo "make run           build, then serve ./var with this host's own metrics; FEATURES=full builds the optional parts, too;"
	@echo "                   HTTP=127.0.0.1:8081 takes another port than 8080"
	@echo "make cluster       three brokers of Kafka, four nodes in two zones, an S3 server and a load, on this machine, until Ctrl-C"
	@echo "make test          install the peers, then run the tests of all that a user meets, and build what check leaves out"
	@echo "make test-all      in addition brokers with faults, packages, whole applications, three times the seeds: needs root, takes hours"
	@echo "make soak          the suite ROUNDS times ($(ROUNDS)) on a loaded machine: which tests do not always pass"
	@echo "make check         formatting, clippy, house rules, licences, unit tests of the changed crates: before each commit"
	@echo "make doc           the documentation in target/doc; a link that leads nowhere is an error"
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
	@echo "make setup         what a developer needs once: make tools (cargo-nextest, cargo-deny), and make peers (what tests compare with)"
	@echo "make all-peers     in addition what only make test-all compares with"
	@echo "make variants      the part of make test that runs no tests: clippy on tests, the default build, the documentation"
	@echo "make prometheus-peer  a newer Prometheus than Debian's, for the tests that compare answers"
	@echo "make clean         removes target, and with it the peers that are no Debian packages"

# Built quickly: without what is a feature of crate `roundel`, and with less optimisation than packages and figures (`--release`).
run: rust
	@echo "Building the daemon and rrdtool. The first time takes two to three minutes on two cores."
	$(CARGO) build --profile quick --locked -p roundel --bins $(if $(FEATURES),--features '$(FEATURES)')
	@mkdir -p var/rrd
	@echo
	@echo "Roundel keeps its store in ./var/store, names RRDs as in ./var/rrd, and records this host. In another terminal:"
	@echo "  cd $(CURDIR)/var/rrd"
	@echo "  export RRDCACHED_ADDRESS=unix:$(CURDIR)/var/rrdcached.sock PATH=$(TARGET)/quick:\$$PATH"
	@echo "  rrdtool list -r /     # what there is"
	@echo "  rrdtool create test.rrd -s 10 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:360"
	@echo "The page, with live graphs of this machine: http://$(HTTP)/"
	@echo "Ctrl-C stops it; nothing acknowledged is lost."
	@echo
	@[ -e roundel.toml ] || { $(TARGET)/quick/roundel snmp discover 127.0.0.1 --timeout 3 >/dev/null 2>&1 && printf '%s\n' '' \
	  "An SNMP agent answers on 127.0.0.1. To poll it too, stop this, and:" \
	  "  printf '[collect]\nhost = true\n\n[[snmp]]\ndevice = \"127.0.0.1\"\n' > roundel.toml && make run" ''; } &
	$(TARGET)/quick/roundel serve --base var/rrd --http $(HTTP)

# Of the peers only Kafka's broker (Java and Maven, once 44 MB) and, where there is Go, an S3 server.
cluster: rust
	@! command -v go >/dev/null || sh peers/install.sh versitygw $(TARGET)
	@sh crates/testkit/kafka/prepare.sh $(TARGET)/kafka
	$(CARGO) build --profile quick --locked -p roundel --bins --features kafka,backup
	@sh crates/testkit/kafka/cluster.sh $(TARGET)/kafka $(TARGET)/quick $(TARGET)/cluster

# With half the usual seeds of random tests; `make test-all` runs three times the usual seeds.
test: peers
	@sh peers/test.sh $(TARGET) '$(EVERYTHING)'

# Rarely broken by a change, so `make check` leaves it out: the default build, which lacks optional features, what clippy says of tests,
# the fuzz targets, the documentation's links.
variants:
	$(CARGO) clippy $(EVERYTHING) --all-targets -- $(DENY)
	$(CARGO) test --profile quick --locked -p roundel --test features
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --locked
	@$(MAKE) --no-print-directory doc

doc:
	RUSTDOCFLAGS='$(DENY) -A rustdoc::private_intra_doc_links' $(CARGO) doc --workspace --all-features --no-deps --locked

# Each feature of crate `roundel` alone, as `make run FEATURES=...` builds it; of the others only what it needs.
features:
	for feature in $$(sed -n '/^full = \[/,/^\]/s/^ *"\(.*\)",/\1/p' crates/roundel/Cargo.toml) kafka; do \
	  echo "feature $$feature"; $(CARGO) check --profile quick --quiet --locked -p roundel --features $$feature || exit 1; done

# The tests of both tiers, root's included, with longer random runs. CI in a new root runs also after a failure.
test-all: root all-peers variants features
	@rm -f $(TARGET)/skipped.txt
	env -u ROUNDEL_SEED -u ROUNDEL_EXECUTABLE -u ROUNDEL_TEST_CLUSTER ROUNDEL_NO_SKIP=1 ROUNDEL_SEEDS=3x \
	  $(NEXTEST) $(EVERYTHING) --profile all --retries 0 || status=1; sh peers/fresh.sh $(TARGET) || status=1; exit $${status:-0}

rust:
	@command -v $(CARGO) >/dev/null || { echo "cargo is missing: install Rust $(RUST) by rustup" >&2; exit 1; }

debhelper:
	@command -v dh >/dev/null || { echo "dh is missing: apt-get install debhelper (make setup does it, too)" >&2; exit 1; }

root:
	@[ "$$(id -u)" = 0 ] || { echo "make test-all needs root: it mounts file systems, and makes a root of its own" >&2; exit 1; }

# Unit tests run for the crates that changed since the last commit, with a tenth of the seeds; `make test` runs all tests, and has
# clippy read them.
check: tools
	@$(if $(DENY),:,echo "make check: warnings do not fail, because this is not Rust $(RUST): $$(rustc -V)")
	@sh peers/check.sh $(TARGET) '$(EVERYTHING)' '$(DENY)'

bench: peers
	$(CARGO) build --release --locked --features roundel/full -p roundel -p roundel-bench -p roundel-librrd
	$(CARGO) build --release --locked -p roundel-rrd-file --example direct
	$(TARGET)/release/bench compare --roundel $(TARGET)/release/roundel --mode quick $(if $(AGAINST),--against $(AGAINST))

bench-full: peers
	$(CARGO) build --release --locked --features roundel/full -p roundel -p roundel-bench -p roundel-librrd
	$(CARGO) build --release --locked -p roundel-rrd-file --example direct
	$(TARGET)/release/bench compare --roundel $(TARGET)/release/roundel --mode full $(if $(AGAINST),--against $(AGAINST))
	$(TARGET)/release/bench cluster --roundel $(TARGET)/release/roundel
	ROUNDEL_FAULTS=200 ROUNDEL_SEED=1 $(CARGO) test --locked -p roundel --features full --test replication -- nodes_zones_and_brokers --nocapture

gallery: peers
	$(CARGO) build --release --locked --features roundel/full -p roundel -p roundel-bench
	$(TARGET)/release/bench gallery --ours $(TARGET)/release/rrdtool --out $(TARGET)/gallery

deb: rust debhelper
	debian/rules clean binary DEBS=$(TARGET)/deb
	debian/rules clean

# With an explicit --target, so that build-time code (procedural macros) is not affected.
static:
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --locked --target $(STATIC) -p roundel --features full

oracle: peers
	@rm -f $(TARGET)/skipped.txt
	$(NEXTEST) $(EVERYTHING) -E 'binary(/oracle/)' || status=$$?; sh peers/skipped.sh $(TARGET)/skipped.txt; exit $${status:-0}

sim:
	ROUNDEL_SEED=$(SEED) $(CARGO) test --locked -p roundel-store --test simulation -- --nocapture

fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

audit: tools
	$(TOOLS)/cargo-deny check advisories

setup: peers

# Installs only what is missing, so the second time takes a second and needs no network.
peers: rust
	@sh peers/install.sh test $(TARGET)

all-peers: rust
	@sh peers/install.sh all $(TARGET)

tools: rust
	@sh peers/install.sh tools $(TARGET)

# A Prometheus of the language's newest version, for the tests that compare answers; Debian's is older. Ten minutes on two cores.
prometheus-peer:
	@sh peers/install.sh prometheus $(TARGET)

# Runs the suite ROUNDS times while something loads both cores and the disk, and reports each test that did not always pass.
soak: peers
	@python3 peers/soak.py $(TARGET) $(ROUNDS)

# The five reports again; what an interrupted run has measured stands. lab-full: the larger sizes, the page-fault model's whole staircase, and how
# far one machine goes.
LAB = $(SUDO) /usr/bin/python3 lab/run.py --roundel $(TARGET)/release/roundel --results $(TARGET)/lab --work $(TARGET)/lab/work
lab: peers
	$(CARGO) build --release --locked -p roundel --features full --bin roundel
	$(LAB)

lab-full: peers lab-staircase lab-scale
	$(LAB) --full

# What was measured before stands: remove lab/staircase.json to measure all again.
lab-staircase: peers
	$(CARGO) build --release --locked -p roundel --features full --bin roundel
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
	$(CARGO) build --release --locked --features roundel/full -p roundel -p roundel-bench --bin roundel --bin bench
	/usr/bin/python3 lab/scale.py --roundel $(TARGET)/release/roundel --bench $(TARGET)/release/bench --work $(TARGET)/lab

# The list of crates in the executable, for /licenses. A test of crates/tidy says when it is out of date.
licences:
	ROUNDEL_WRITE_LICENCES=1 $(CARGO) test --locked -p roundel-tidy --test licences

page-shots: peers
	ROUNDEL_PAGE_SHOTS=1 $(NEXTEST) --locked --all-features -p roundel --test page every_page_is_accessible_and_works_without_script
	@echo "Pictures: $(TARGET)/page/shots"

clean:
	$(CARGO) clean
	rm -rf bench/work
