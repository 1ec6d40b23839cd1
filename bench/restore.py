#!/usr/bin/env python3
"""Measures a restore from a local S3 server: the time until the first answer and until everything has come.

    bench/restore.py [--rrds 1000000] [--rounds 288] [--roundel target/release/roundel] [--versitygw target/versitygw/versitygw]

RRDs of the W2 geometry (GAUGE and COUNTER, 300 s, 8 archives, no placeholders) are fed with a round of values per 300 s of simulated
time, backed up to versitygw, and stopped. Then the store is removed, and restored with --early.
"""

import argparse
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

ARCHIVES = " ".join(f"RRA:{cf}:0.5:{rows}" for cf in ("AVERAGE", "MAX") for rows in ("1:600", "6:700", "24:775", "288:797"))
START = 1_700_000_100
# Commands in one write; BATCH answers once.
CHUNK = 5000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Client:
    def __init__(self, path):
        deadline = time.monotonic() + 600
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self.file = self.socket.makefile("rb")

    def ask(self, text):
        self.socket.sendall(text.encode() + b"\n")
        first = self.file.readline().decode()
        lines = [self.file.readline() for _ in range(max(int(first.split()[0]), 0))]
        return first, lines

    def batch(self, lines):
        self.socket.sendall(b"BATCH\n")
        self.file.readline()
        self.socket.sendall("".join(line + "\n" for line in lines).encode() + b".\n")
        first = self.file.readline().decode()
        assert first.startswith("0 "), first


def metric(port, name):
    try:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return None


def wait_for(what):
    while not what():
        time.sleep(0.05)


def tree_bytes(path):
    return sum(os.stat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(path) for name in names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rrds", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=288)
    parser.add_argument("--roundel", default="target/release/roundel")
    parser.add_argument("--versitygw", default="target/versitygw/versitygw")
    parser.add_argument("--work", default=None)
    given = parser.parse_args()
    roundel, versitygw = os.path.abspath(given.roundel), os.path.abspath(given.versitygw)
    work = tempfile.mkdtemp(prefix="restore-", dir=given.work)
    try:
        measure(given, roundel, versitygw, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure(given, roundel, versitygw, work):
    s3, http = free_port(), free_port()
    os.makedirs(f"{work}/s3/bucket")
    os.makedirs(f"{work}/side")
    config = f"""store = "store"
base = "base"
placeholders = false
adopt = false
[[listen]]
address = "unix:sock"
[http]
listen = ["127.0.0.1:{http}"]
[stripes]
scrub = "off"
[log]
file = "log"
[backup]
to = "s3://bucket/x"
endpoint = "http://127.0.0.1:{s3}"
region = "us-east-1"
access_key_id = "an-id"
secret_access_key = "a-secret"
"""
    with open(f"{work}/c.toml", "w") as file:
        file.write(config)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": work}
    server = subprocess.Popen(
        [versitygw, "--access", "an-id", "--secret", "a-secret", "--port", f"127.0.0.1:{s3}", "posix",
         "--sidecar", f"{work}/side", f"{work}/s3"], **quiet)
    daemon = None
    try:
        serve = [roundel, "serve", "--config", "c.toml"]
        daemon = subprocess.Popen(serve, **quiet)
        client = Client(f"{work}/sock")
        begun = time.monotonic()
        names = [f"r{number}.rrd" for number in range(given.rrds)]
        for name in names:
            first, _ = client.ask(
                f"CREATE {name} -b {START - 300} -s 300 DS:in:GAUGE:600:U:U DS:out:COUNTER:600:U:U {ARCHIVES}")
            assert first.startswith("0 "), first
        print(f"created in {time.monotonic() - begun:.0f} s", flush=True)
        begun = time.monotonic()
        # Several readings of an RRD in one line, as from a spool: the values are the same, the feeding is quicker.
        per_line = 12
        for start in range(0, given.rounds, per_line):
            rounds = range(start, min(start + per_line, given.rounds))
            for at in range(0, given.rrds, CHUNK):
                batch = []
                for number in range(at, min(at + CHUNK, given.rrds)):
                    words = " ".join(
                        f"{START + 300 * step}:{((number * 7919 + step * 104729) % 204800) / 100:.2f}:"
                        f"{number * 1000 + step * 30000 + (step * number) % 977}" for step in rounds)
                    batch.append(f"UPDATE {names[number]} {words}")
                client.batch(batch)
        print(f"fed in {time.monotonic() - begun:.0f} s", flush=True)
        want = client.ask(f"FETCH {names[7]} AVERAGE {START} {START + 300 * given.rounds}")
        last = time.time()
        wait_for(lambda: (metric(http, "roundel_backup_complete_seconds") or 0) > last)
        daemon.terminate()
        daemon.wait()
        print(f"store {tree_bytes(work + '/store') / 1e6:.0f} MB, backup {tree_bytes(work + '/s3') / 1e6:.0f} MB", flush=True)
        shutil.rmtree(f"{work}/store")
        begun = time.monotonic()
        subprocess.run(
            [roundel, "restore", "--from", "s3://bucket/x", "--config", "c.toml", "--to", "store", "--early"],
            check=True, cwd=work)
        early = time.monotonic() - begun
        daemon = subprocess.Popen(serve, **quiet)
        client = Client(f"{work}/sock")
        first, _ = client.ask(f"UPDATE {names[5]} {START + 300 * given.rounds}:1:{10**9}")
        assert first.startswith("0 "), first
        updated = time.monotonic() - begun
        got = client.ask(f"FETCH {names[7]} AVERAGE {START} {START + 300 * given.rounds}")
        answered = time.monotonic() - begun
        assert got == want, "the restored RRD differs"
        wait_for(lambda: metric(http, "roundel_restore_left_bytes") in (0, None) and metric(http, "roundel_connections_total") is not None)
        complete = time.monotonic() - begun
        lost = metric(http, "roundel_restore_lost_parts")
        print(f"{given.rrds} RRDs, {given.rounds} rounds: restore --early {early:.1f} s, first update answered after {updated:.1f} s, "
              f"first rows after {answered:.1f} s, complete after {complete:.1f} s, lost parts {lost or 0:.0f}")
    finally:
        for child in (daemon, server):
            if child and child.poll() is None:
                child.kill()
                child.wait()


if __name__ == "__main__":
    main()
