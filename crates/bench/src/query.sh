#!/bin/sh
# 95th percentile of many RRDs over a month: `roundel query` beside one pipe of `rrdtool graph ... PRINT`.
#
#   crates/bench/src/query.sh [COUNT [DIRECTORY]]
#
# COUNT RRDs (10000 unless told) of a month in five-minute rows are made in DIRECTORY; both programs read them
# with the cache warm, three times (ROUNDS) in turn, and both answers are compared. The best counts. With BEFORE,
# another executable of ours, that takes rrdtool's place.
set -eu
count=${1:-10000}
directory=${2:-$(mktemp -d)}
roundel=$(realpath "${ROUNDEL:-target/release/roundel}")
mkdir -p "$directory"
cd "$directory"
export TZ=UTC LC_ALL=C
unset RRDCACHED_ADDRESS || true
start=1000000200
end=$((start + 30 * 86400))

if [ ! -e "r$((count - 1)).rrd" ]; then
    # Eight kinds of traffic, each copied: what is read is what counts.
    for kind in 0 1 2 3 4 5 6 7; do
        awk -v kind="$kind" -v start="$start" 'BEGIN {
            srand(kind + 1)
            print "create kind" kind ".rrd --start " start " --step 300 DS:in:GAUGE:600:U:U RRA:AVERAGE:0.5:1:8928 RRA:AVERAGE:0.5:12:800"
            for (row = 1; row <= 8640;) {
                line = "update kind" kind ".rrd"
                for (i = 0; i < 100 && row <= 8640; i++) {
                    line = line " " start + row * 300 ":" (rand() < 0.02 ? 0 : rand() * 1e7)
                    row++
                }
                print line
            }
        }' | rrdtool - > /dev/null
    done
    number=0
    while [ "$number" -lt "$count" ]; do
        cp "kind$((number % 8)).rrd" "r$number.rrd"
        number=$((number + 1))
    done
fi

arguments="-s $start -e $end"
number=0
while [ "$number" -lt "$count" ]; do
    echo "graph /dev/null $arguments -w 9000 --step 300 DEF:in=r$number.rrd:in:AVERAGE VDEF:p=in,95,PERCENT PRINT:p:%.10le"
    number=$((number + 1))
done > commands

now() { date +%s%N; }
# shellcheck disable=SC2086
query() { "$1" query $arguments --percentile 95 --format csv 'DEF:in=r*.rrd:in:AVERAGE'; }
best_theirs= best_ours=
for round in $(seq "${ROUNDS:-3}"); do
    begun=$(now)
    if [ -n "${BEFORE:-}" ]; then query "$BEFORE" > theirs; else rrdtool - < commands > theirs; fi
    theirs=$(($(now) - begun))
    begun=$(now)
    query "$roundel" > ours
    ours=$(($(now) - begun))
    echo "round $round: peer $((theirs / 1000000)) ms, roundel $((ours / 1000000)) ms"
    if [ -z "$best_theirs" ] || [ "$theirs" -lt "$best_theirs" ]; then best_theirs=$theirs; fi
    if [ -z "$best_ours" ] || [ "$ours" -lt "$best_ours" ]; then best_ours=$ours; fi
done

column() { tail -n +2 "$1" | cut -d, -f2 | awk '{ printf "%.10e\n", $1 }' | sort; }
if [ -n "${BEFORE:-}" ]; then column theirs > theirs.sorted
else grep -E '^-?[0-9n].*e|nan' theirs | sort > theirs.sorted; fi
column ours > ours.sorted
if ! cmp -s theirs.sorted ours.sorted; then
    echo "the answers differ"
    exit 1
fi
awk -v theirs="$best_theirs" -v ours="$best_ours" -v count="$count" 'BEGIN {
    printf "%d RRDs: peer %.0f ms, roundel query %.0f ms: %.1f times as fast\n", count, theirs / 1e6, ours / 1e6, theirs / ours
}'
