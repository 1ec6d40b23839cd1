#!/usr/bin/env python3
"""Samples per second and CPU time per sample of a receiver of remote write 1.0.

    bench/remote_write.py NAME URL PID [SERIES] [ROUNDS]

First all series are made, with one sample each; then ROUNDS - 1 rounds of SERIES samples, 15 s apart, half of them of counters, in requests of
2,000 over two connections. All receivers get the same requests (literals only, so that decompression counts for none of them). The CPU time of PID is
read two seconds after the last answer.

    victoria-metrics -storageDataPath=v -httpListenAddr=127.0.0.1:8428
    prometheus --config.file=p.yml --storage.tsdb.path=p --web.listen-address=127.0.0.1:9090 --web.enable-remote-write-receiver
"""
import sys, struct, time, socket, threading, os
name, url, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
N = int(sys.argv[4]) if len(sys.argv) > 4 else 20000
R = int(sys.argv[5]) if len(sys.argv) > 5 else 30
PER, CONN = 2000, 2
host, port = url.split('/')[2].split(':'); path = '/' + url.split('/', 3)[3]
def varint(n):
    out = bytearray()
    while n >= 128: out.append(n & 127 | 128); n >>= 7
    out.append(n); return bytes(out)
def field(n, b): return varint(n << 3 | 2) + varint(len(b)) + b
def labels(i):
    l = [('__name__', 'node_metric_%d_total' % (i % 200) if i % 2 else 'node_level_%d' % (i % 200)), ('device', 'eth%d' % (i % 7)), ('instance', 'host-%d:9100' % (i // 200)), ('job', 'node'), ('mode', 'idle')]
    return b''.join(field(1, field(1, k.encode()) + field(2, v.encode())) for k, v in l)
L = [labels(i) for i in range(N)]
def snappy(data):
    out = bytearray(varint(len(data)))
    for at in range(0, len(data), 60000):
        part = data[at:at+60000]
        out += bytes([61 << 2]) + struct.pack('<H', len(part) - 1) + part
    return bytes(out)
now = int(time.time()) // 15 * 15
def body(start, round):
    t = (now - 15 * (R - round)) * 1000
    out = bytearray()
    for i in range(start, min(start + PER, N)):
        v = round * 15.0 * (i % 50 + 1) if i % 2 else (i * 7919 + round * 104729) % 1000 / 7
        out += field(1, L[i] + field(2, b'\x09' + struct.pack('<d', v) + b'\x10' + varint(t)))
    b = snappy(bytes(out))
    return (f'POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: {len(b)}\r\n\r\n').encode() + b
bodies = [[body(s, r) for s in range(0, N, PER)] for r in range(R)]
def cpu():
    f = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')
def worker(k, rounds, bad):
    s = socket.create_connection((host, int(port))); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for r in rounds:
        for b in bodies[r][k::CONN]:
            s.sendall(b)
            h = b''
            while b'\r\n\r\n' not in h: h += s.recv(65536)
            head, rest = h.split(b'\r\n\r\n', 1)
            st = int(head.split()[1])
            n = 0
            for line in head.lower().split(b'\r\n'):
                if line.startswith(b'content-length:'): n = int(line[15:])
            while len(rest) < n: rest += s.recv(65536)
            if st not in (200, 204): bad.append((st, rest[:300]))
def run(rounds):
    bad = []
    ts = [threading.Thread(target=worker, args=(k, rounds, bad)) for k in range(CONN)]
    c, t = cpu(), time.time()
    [x.start() for x in ts]; [x.join() for x in ts]
    return time.time() - t, cpu() - c, bad
w1, c1, bad = run(range(1))
print(f'{name}: {N} new series in {w1:.2f} s, {c1/N*1e6:.2f} us CPU each', bad[:2])
w, c, bad = run(range(1, R))
n = N * (R - 1)
time.sleep(2)
c2 = cpu()
print(f'{name}: {n/w:,.0f} samples/s, {c/n*1e6:.2f} us CPU/sample', bad[:2])
