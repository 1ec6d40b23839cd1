#!/usr/bin/env python3
"""Graphite's lines: values a second and CPU a value of carbon-cache, VictoriaMetrics and Roundel, one after the other.

    python3 bench/graphite.py target/release/roundel [SERIES [ROUNDS [TURNS]]]

One connection sends the same lines to each: ROUNDS values of each of SERIES. Carbon, which is far slower, gets a tenth of them; what it has
received lies in its memory, so the ratio is of what it has written. Needs Debian's graphite-carbon and victoria-metrics.
"""
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

roundel = sys.argv[1]
series, rounds, turns = (int(word) for word in (sys.argv[2:] + ["5000", "200", "3"][len(sys.argv) - 2:]))
root = "/tmp/graphite-bench"
shutil.rmtree(root, ignore_errors=True); os.makedirs(root)
start = int(time.time()) // 60 * 60 - rounds * 10

def lines(limit):
    for r in range(limit):
        t = start + 10 * r
        yield "".join("servers.host%d.cpu%d.load %d.%d %d\n" % (i % 100, i // 100, (i * 7 + r) % 90, r % 10, t) for i in range(series)).encode()

def send(port, limit):
    bodies = list(lines(limit))
    s = socket.create_connection(("127.0.0.1", port))
    began = time.time()
    for b in bodies: s.sendall(b)
    s.shutdown(socket.SHUT_WR)
    return began, s

def wait(port):
    for _ in range(300):
        try: return socket.create_connection(("127.0.0.1", port)).close()
        except OSError: time.sleep(0.1)
    raise SystemExit("no port %d" % port)

def cpu(pid):
    f = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")

def metric(url, name):
    text = urllib.request.urlopen(url).read().decode()
    return sum(float(l.split()[-1]) for l in text.splitlines() if l.startswith(name))

def report(what, values, began, pid, c0):
    took = time.time() - began
    used = cpu(pid) - c0
    print("%-18s %9d values in %6.2f s: %9.0f/s, CPU %.2f us a value" % (what, values, took, values / took, used / values * 1e6), flush=True)
    return values / took, used / values

def carbon():
    d = root + "/carbon"; os.makedirs(d)
    open(d + "/carbon.conf", "w").write("[cache]\nSTORAGE_DIR = %s/\nLOCAL_DATA_DIR = %s/whisper/\nCONF_DIR = %s/\nLOG_DIR = %s/\nPID_DIR = %s/\nMAX_CREATES_PER_MINUTE = inf\nMAX_UPDATES_PER_SECOND = inf\nMAX_CACHE_SIZE = inf\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = 32003\nPICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = 32002\nENABLE_LOGROTATION = False\nUSER =\nWHISPER_AUTOFLUSH = False\n" % ((d,) * 5))
    open(d + "/storage-schemas.conf", "w").write("[all]\npattern = .*\nretentions = 10s:6h,1m:7d\n")
    p = subprocess.Popen(["/usr/bin/carbon-cache", "--nodaemon", "--config", d + "/carbon.conf", "--pidfile", d + "/pid", "start"], stdout=open(d + "/log", "w"), stderr=subprocess.STDOUT)
    wait(32003)
    limit = max(1, rounds // 10)
    c0 = cpu(p.pid); began, s = send(32003, limit)
    # It closes the connection when it has read to its end.
    s.recv(1)
    report("carbon, received", limit * series, began, p.pid, c0)
    # Written, once it has had nothing to do for a second, which does not count.
    before, quiet = cpu(p.pid), 0
    while quiet < 5:
        time.sleep(0.2)
        now = cpu(p.pid); quiet = quiet + 1 if now - before < 0.02 else 0; before = now
    r = report("carbon, written", limit * series, began + 1, p.pid, c0)
    p.kill(); p.wait(); return r

def victoria():
    d = root + "/vm"; os.makedirs(d)
    p = subprocess.Popen(["/usr/bin/victoria-metrics", "-storageDataPath=" + d, "-graphiteListenAddr=127.0.0.1:32013", "-httpListenAddr=127.0.0.1:32018", "-retentionPeriod=1y"], stdout=open(d + ".log", "w"), stderr=subprocess.STDOUT)
    wait(32013); wait(32018)
    c0 = cpu(p.pid); began, s = send(32013, rounds)
    while metric("http://127.0.0.1:32018/metrics", 'vm_rows_inserted_total{type="graphite"') < rounds * series: time.sleep(0.02)
    r = report("victoria-metrics", rounds * series, began, p.pid, c0)
    p.kill(); p.wait(); return r

def ours():
    d = root + "/roundel"; os.makedirs(d + "/rrd")
    open(d + "/s.conf", "w").write("[all]\npattern = .*\nretentions = 10s:6h,1m:7d\n")
    open(d + "/roundel.toml", "w").write('layout = "stripes"\nstore = "%s/store"\nbase = "%s/rrd"\n[[listen]]\naddress = "unix:%s/sock"\n[http]\nlisten = ["127.0.0.1:32028"]\n[carbon]\nlisten = ["tcp://127.0.0.1:32023"]\nschemas = "%s/s.conf"\n' % (d, d, d, d))
    p = subprocess.Popen([roundel, "serve", "--config", d + "/roundel.toml"], stdout=open(d + "/log", "w"), stderr=subprocess.STDOUT)
    wait(32023)
    c0 = cpu(p.pid); began, s = send(32023, rounds)
    want = rounds * series
    while True:
        m = urllib.request.urlopen("http://127.0.0.1:32028/metrics").read().decode()
        got = sum(float(l.split()[-1]) for l in m.splitlines() if l.startswith("roundel_ingest_samples_total") or l.startswith("roundel_ingest_refused_total"))
        if got >= want: break
        time.sleep(0.02)
    r = report("roundel", want, began, p.pid, c0)
    for l in m.splitlines():
        if l.startswith("roundel_ingest_refused_total"): print(l)
    p.kill(); p.wait(); return r

for turn in range(turns):
    c, v, o = carbon(), victoria(), ours()
    print("values/s: %.1fx carbon, %.2fx VictoriaMetrics; CPU a value: 1/%.1f of carbon, %.2f of VictoriaMetrics" % (o[0] / c[0], o[0] / v[0], c[1] / o[1], o[1] / v[1]), flush=True)
    shutil.rmtree(root); os.makedirs(root)
