#!/bin/sh
# A cluster on one machine, to look at and to break: three brokers of Kafka, four nodes in two zones, an S3 server with their backups, and a
# load. `make cluster` runs it.
#
#   cluster.sh KAFKA PROGRAMS WORK
#
# KAFKA is what prepare.sh made, PROGRAMS has roundel and rrdtool, WORK is a directory that begins and ends empty. Ctrl-C ends everything. The S3 server is
# what `make peers` fetched beside KAFKA, or one in PATH; without any, backups are in a directory.
# Ports of 127.0.0.1 from CLUSTER_PORT (21000) on: brokers +1 to +3, their controllers +11 to +13, nodes among themselves +21 to +24, clients +31 to +34,
# pages +41 to +44, the S3 server +51.
set -eu
kafka=$(cd "$1" && pwd -P)
programs=$(cd "$2" && pwd -P)
PATH=$programs:$PATH
mkdir -p "$3"
work=$(cd "$3" && pwd -P)
port=${CLUSTER_PORT:-21000}
rm -rf "$work"/*
cd "$work"
mkdir pids
[ -e "$kafka/installed.xml" ] || { echo "make cluster: $kafka is not complete; make peers fetches Kafka's broker" >&2; exit 1; }

# signal NAME FILE...: sends a signal to the processes of these files that are ours still; true if there was one.
signal() {
  name=$1
  shift
  found=1
  for file in "$@"; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    # A number may belong to another process by now.
    case $(readlink "/proc/$pid/cwd") in "$work"* | "$kafka") kill "-$name" "$pid" 2>/dev/null && found=0 ;; esac
  done
  return $found
}

# Ends what runs: nodes are asked first, and have ten seconds. What is left if something failed is the logs.
finish() {
  status=$?
  trap '' INT TERM
  trap - EXIT
  # Nodes first: each has a last round of its backups, which needs the S3 server.
  signal TERM pids/load pids/node-* || true
  tries=0
  while signal 0 pids/node-* && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  signal KILL pids/* || true
  wait
  cd /
  if [ $status -eq 0 ]; then rm -rf "$work"; echo "The cluster is ended, and its files are removed."
  else echo "make cluster failed; the logs are $work/*.log" >&2; fi
  exit $status
}
trap finish EXIT
trap 'exit 0' INT TERM

# until_true WHAT COMMAND...: waits for two minutes, or longer where each try takes long.
until_true() {
  what=$1
  shift
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 480 ] || { echo "make cluster: $what does not come" >&2; exit 1; }
    sleep 0.25
  done
}

start_broker() {
  (cd "$kafka" && exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:SharedArchiveFile=classes.jsa \
    -Djava.awt.headless=true -Dlog4j2.configurationFile=log4j2.properties -cp 'lib/*' kafka.Kafka "$work/broker-$1.properties") >>"broker-$1.log" 2>&1 &
  echo $! >"pids/broker-$1"
}

start_node() {
  (cd "node-$1" && exec roundel serve) >>"node-$1.log" 2>&1 &
  echo $! >"pids/node-$1"
}

# The first of these programs that there is.
found() {
  for program in "$@"; do command -v "$program" && return; done
  return 1
}

# Writes the script `s3-server`, which runs one of the two servers with the bucket "demo"; false if there is neither.
s3_files() {
  mkdir -p s3/demo attributes
  if program=$(found "$kafka/../versitygw/versitygw" versitygw); then
    options="--access demo --secret demo-secret --port 127.0.0.1:$((port + 51)) posix --sidecar '$work/attributes' '$work/s3'"
  elif program=$(found "$kafka/../s3s-fs/bin/s3s-fs" s3s-fs); then
    options="--access-key demo --secret-key demo-secret --host 127.0.0.1 --port $((port + 51)) '$work/s3'"
  else
    return 1
  fi
  printf '#!/bin/sh\ncd "%s" && exec "%s" %s\n' "$work" "$program" "$options" >s3-server
  chmod +x s3-server
}

start_s3() {
  ./s3-server >>s3.log 2>&1 &
  echo $! >pids/s3
}

broker_files() {
  mkdir "broker-$1"
  printf 'version=1\ncluster.id=RroundelOnOneMachineQQ\nnode.id=%s\ndirectory.id=RdirectoryOfBroker%s00A\n' "$1" "$1" >"broker-$1/meta.properties"
  # What docs/cluster.md recommends: a broker that is dead is noticed after two seconds.
  cat >"broker-$1.properties" <<P
process.roles=broker,controller
node.id=$1
log.dirs=$work/broker-$1
controller.quorum.voters=1@127.0.0.1:$((port + 11)),2@127.0.0.1:$((port + 12)),3@127.0.0.1:$((port + 13))
listeners=PLAINTEXT://127.0.0.1:$((port + $1)),CONTROLLER://127.0.0.1:$((port + 10 + $1))
advertised.listeners=PLAINTEXT://127.0.0.1:$((port + $1))
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
auto.create.topics.enable=false
offsets.topic.num.partitions=1
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
log.cleaner.dedupe.buffer.size=4194304
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
replica.lag.time.max.ms=2000
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.timeout.ms=500
controller.socket.timeout.ms=2000
P
}

node_files() {
  mkdir -p "node-$1/base"
  cat >"node-$1/roundel.toml" <<T
store = "store"
base = "base"
[[listen]]
address = "127.0.0.1:$((port + 30 + $1))"
[http]
listen = ["127.0.0.1:$((port + 40 + $1))"]
[cluster]
name = "demo"
node = "node-$1"
zone = "$2"
listen = "127.0.0.1:$((port + 20 + $1))"
secret_file = "../secret"
replication = 2
[cluster.kafka]
brokers = ["127.0.0.1:$((port + 1))", "127.0.0.1:$((port + 2))", "127.0.0.1:$((port + 3))"]
topic = "roundel"
[backup]
to = "$backup/roundel"
interval = "5s"
T
  [ ! -e s3-server ] || cat >>"node-$1/roundel.toml" <<T
endpoint = "http://127.0.0.1:$((port + 51))"
region = "us-east-1"
access_key_id = "demo"
secret_access_key = "demo-secret"
T
}

status() { roundel cluster status --daemon "127.0.0.1:$((port + 30 + $1))"; }
is_well() { status 1 | grep 'all led, with 2 ready replicas each'; }

# The lines of `rrdtool -` for all RRDs: $1 create, or update with the present time.
lines() {
  awk -v what="$1" 'BEGIN {
    srand()
    for (host = 1; host <= 40; host++) for (port = 1; port <= 5; port++) {
      name = "switch-" host "/port-" port ".rrd"
      if (what == "create") print "create -O " name " -s 5 DS:octets:GAUGE:15:0:U RRA:AVERAGE:0.5:1:720 RRA:MAX:0.5:12:720"
      else print "update " name " N:" int(1000 * host + 100 * port + 500 * rand())
    }
  }'
}

# tell NODE WHAT: gives all lines to a node; true if it took them all.
tell() {
  lines "$2" | RRDCACHED_ADDRESS=127.0.0.1:$((port + 30 + $1)) timeout 20 rrdtool - >"$work/said" 2>&1 || return 1
  ! grep -q ERROR "$work/said"
}

# Every five seconds a value for each RRD, by the first node that takes them.
load() {
  node=1
  while :; do
    tries=0
    until tell $node update; do
      echo "$(date +%T)  node-$node did not take all values: $(grep -m 1 ERROR said || echo 'no answer')"
      node=$((node % 4 + 1))
      tries=$((tries + 1))
      [ $tries -lt 8 ] || break
    done
    [ $tries -eq 8 ] || printf '%s  200 values through node-%s\n' "$(date +%T)" $node
    sleep 5
  done
}

# The place of the backup of one partition.
is_backed_up() { roundel backup list --config node-1/roundel.toml --from "$place"; }

backup=file://$work/backup
if s3_files; then
  backup=s3://demo
  start_s3
  s3_hint="  kill -9 \$(cat pids/s3)                 # the S3 server is lost: updates and graphs do not wait for it
  ./s3-server                            # it is back, and backups go on; Ctrl-C stops it again"
else
  s3_hint="  ls backup/roundel"
  echo "There is no S3 server: neither versitygw nor s3s-fs. Backups are in the directory $work/backup instead. To have one, install Go and say make cluster" \
    "again, which builds versitygw, or: cargo install s3s-fs --version 0.14.1 --features binary --locked"
fi
place=$backup/roundel/partition-0003-of-16
echo "Three brokers of Kafka start."
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret
for number in 1 2 3; do broker_files $number; start_broker $number; done
for number in 1 2 3; do until_true "broker $number" grep -q 'Kafka Server started' broker-$number.log; done
for number in 1 2 3 4; do node_files $number zone-$((number % 2 + 1)); done
roundel cluster topic --config node-1/roundel.toml --partitions 16
[ ! -e s3-server ] || signal 0 pids/s3 || { echo "make cluster: the S3 server has ended: $(tail -n 1 s3.log)" >&2; exit 1; }
for number in 1 2 3 4; do start_node $number; done
echo "Four nodes share the partitions out."
until_true "a leader and two replicas of each partition" is_well
until_true "an answer to CREATE" tell 1 create
until_true "a backup" is_backed_up
echo
status 1
cat <<T

Pages, each of the whole cluster:
  http://127.0.0.1:$((port + 41))/  http://127.0.0.1:$((port + 42))/  http://127.0.0.1:$((port + 43))/  http://127.0.0.1:$((port + 44))/
In another terminal:
  cd $work
  export PATH=$programs:\$PATH
  roundel cluster status --daemon 127.0.0.1:$((port + 32))
  rrdtool lastupdate switch-7/port-3.rrd --daemon 127.0.0.1:$((port + 33))
  kill -9 \$(cat pids/node-1)              # a node is lost: others have what it had
  (cd node-1 && roundel serve)           # it is back, and reads what it missed; Ctrl-C stops it again
  kill -9 \$(cat pids/broker-1)            # a broker is lost: changes wait for some seconds
  kill -9 \$(cat pids/broker-2)            # no majority is left: changes are refused, graphs go on
  roundel cluster drain --daemon 127.0.0.1:$((port + 34))
Each partition is backed up every five seconds, by the node that leads it:
  place=$place config=node-1/roundel.toml
  roundel backup list --from \$place --config \$config     # moments that can be restored
  roundel backup verify --from \$place --config \$config   # all that makes up the newest one is there, and whole
  roundel restore --from \$place --config \$config --to restored && roundel export --all --from restored --to files
$s3_hint
Two hundred RRDs get a value every five seconds. Ctrl-C here ends everything and removes $work.

T
load &
echo $! >pids/load
wait $!
