#!/bin/sh
# Draws graph.png, the picture of the README: two days of made-up traffic. Usage: docs/graph.sh [RRDTOOL]
set -eu
rrdtool=$(command -v "${1:-rrdtool}")
cd "$(dirname "$0")"
rrd=$(mktemp --suffix=.rrd)
trap 'rm -f "$rrd"' EXIT
export TZ=UTC LC_ALL=C.UTF-8
start=1700006400 # 2023-11-15 00:00 UTC
"$rrdtool" create "$rrd" --start $((start - 300)) --step 300 \
    DS:in:GAUGE:600:0:U DS:out:GAUGE:600:0:U RRA:AVERAGE:0.5:1:600
awk -v start=$start 'BEGIN {
    srand(1)
    for (i = 0; i <= 576; i++) {
        day = sin((i - 96) * 6.283185 / 288)
        burst = i > 390 && i < 420 ? 240e6 : 0
        printf "%d:%.0f:%.0f\n", start + i * 300, 430e6 + 250e6 * day + 60e6 * rand() + burst,
            210e6 + 120e6 * day + 50e6 * rand()
    }
}' | xargs "$rrdtool" update "$rrd"
"$rrdtool" graph graph.png --start $start --end $((start + 172800)) --width 620 --height 170 \
    --title 'core1, port 1' --vertical-label 'bit/s' --lower-limit 0 --slope-mode \
    DEF:in="$rrd":in:AVERAGE DEF:out="$rrd":out:AVERAGE VDEF:p95=in,95,PERCENTNAN \
    AREA:in#9fc8a8 LINE1:in#2c7a3f:'in  ' GPRINT:in:AVERAGE:'average %6.1lf%s' GPRINT:in:MAX:'maximum %6.1lf%s\l' \
    LINE1.5:out#24539e:'out ' GPRINT:out:AVERAGE:'average %6.1lf%s' GPRINT:out:MAX:'maximum %6.1lf%s\l' \
    LINE1:p95#c0392b:'95th percentile of in':dashes GPRINT:p95:'%6.1lf%s\l' > /dev/null
