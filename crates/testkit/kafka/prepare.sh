#!/bin/sh
# Fetches Kafka's broker into the directory $1: jars by Maven (44 MB), and an archive of loaded classes, with which a broker starts in
# three seconds instead of ten. The second time nothing happens, and no network is needed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
if cmp -s "$here/pom.xml" installed.xml; then exit 0; fi
fail() {
  echo "Kafka for the tests: $1" >&2
  exit 1
}
# Two ports that nothing uses now.
free_ports() {
  python3 -c 'import socket
two = [socket.socket() for _ in "12"]
for one in two: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in two))'
}

command -v mvn >/dev/null || fail "mvn is missing; the package maven has it, and Java, too"
rm -rf lib classes.jsa installed.xml try
# Java leaves no file in /tmp/hsperfdata_USER.
export MAVEN_OPTS="${MAVEN_OPTS-} -XX:-UsePerfData"
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$PWD/lib" -DincludeScope=runtime ||
  fail "Maven could not fetch the jars that $here/pom.xml names (see above); it needs a network or a mirror in ~/.m2/settings.xml"
cp "$here/log4j2.properties" .

# One broker runs until it has started, and writes the archive when it is stopped.
mkdir -p try/data
ports=$(free_ports) || fail "python3 finds no free ports"
clients=${ports% *} controller=${ports#* }
printf 'version=1\ncluster.id=archive\nnode.id=1\ndirectory.id=Zx8Y3k1tT0a9qLw2R5vB7g\n' >try/data/meta.properties
cat >try/broker.properties <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$clients,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$clients
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$PWD/try/data
log.cleaner.dedupe.buffer.size=4194304
P
broker=
end_broker() {
  [ -z "$broker" ] || kill -9 "$broker" 2>/dev/null || true
}
trap end_broker EXIT
trap 'exit 130' HUP INT TERM
java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:ArchiveClassesAtExit=classes.jsa -Djava.awt.headless=true \
  -Dlog4j2.configurationFile=log4j2.properties -cp 'lib/*' kafka.Kafka try/broker.properties >try/log 2>&1 &
broker=$!
tries=0
until grep -q 'Kafka Server started' try/log; do
  tries=$((tries + 1))
  if [ $tries -gt 600 ] || ! kill -0 $broker 2>/dev/null; then
    fail "the broker does not start; its log is $PWD/try/log"
  fi
  sleep 0.1
done
kill -TERM $broker
# 143: ended by TERM.
wait $broker || [ $? -eq 143 ] || fail "the broker did not end as asked; its log is $PWD/try/log"
broker=
rm -rf try
cp "$here/pom.xml" installed.xml
