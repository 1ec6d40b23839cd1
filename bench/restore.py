#!/usr/bin/env python3
"""Measures a restore from a local S3 server: the time until the first answer and until everything has come.

    bench/restore.py [--rrds 1000000] [--rounds 288] [--runs 3] [--roundel target/release/roundel] [--versitygw target/versitygw/versitygw]

RRDs of the W2 geometry (GAUGE and COUNTER, 300 s, 8 archives, no placeholders) are fed with a round of values per 300 s of simulated
time, then backed up to versitygw, and stopped. Then the store is removed, and restored with --early. A million RRDs with a day of
values take some 12 GB meanwhile. With --work DIR the backup stays there, so that it can be restored again later without the feeding.
"""

import argparse
import json
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
# Readings of an RRD in one line, as from a spool.
PER_LINE = 12
# RRDs whose readings differ; further ones repeat them. To write the text of each reading took longer than to store it.
SEQUENCES = 20_000


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

    def pipeline(self, lines):
        """Sends all at once; each is answered by one line."""
        self.socket.sendall("".join(line + "\n" for line in lines).encode())
        for _ in lines:
            first = self.file.readline().decode()
            assert first.startswith("0 "), first

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
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--roundel", default="target/release/roundel")
    parser.add_argument("--versitygw", default="target/versitygw/versitygw")
    parser.add_argument("--work")
    given = parser.parse_args()
    work = os.path.abspath(given.work) if given.work else tempfile.mkdtemp(prefix="restore-")
    try:
        with Place(given, work) as place:
            if not os.path.exists(f"{work}/fed.json"):
                make_backup(given, place)
            for run in range(given.runs):
                restore(given, place, run)
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)


def reading(number, step):
    gauge = ((number * 7919 + step * 104729) % 204800) / 100
    counter = number * 1000 + step * 30000 + (step * number) % 977
    return f"{START + 300 * step}:{gauge:.2f}:{counter}"


def feed(client, names, rounds):
    """One reading per RRD and round."""
    for start in range(0, rounds, PER_LINE):
        steps = range(start, min(start + PER_LINE, rounds))
        words = [" ".join(reading(number, step) for step in steps) for number in range(min(SEQUENCES, len(names)))]
        for at in range(0, len(names), CHUNK):
            numbers = range(at, min(at + CHUNK, len(names)))
            client.batch([f"UPDATE {names[number]} {words[number % len(words)]}" for number in numbers])


class Place:
    """The S3 server, and the daemon while there is one; both end with it."""

    def __init__(self, given, work):
        self.work, self.roundel, self.daemon = work, os.path.abspath(given.roundel), None
        self.s3, self.http = free_port(), free_port()
        self.quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": work}
        for path in ("s3/bucket", "side"):
            os.makedirs(f"{work}/{path}", exist_ok=True)
        self.server = subprocess.Popen(
            [os.path.abspath(given.versitygw), "--access", "an-id", "--secret", "a-secret", "--port", f"127.0.0.1:{self.s3}",
             "posix", "--sidecar", f"{work}/side", f"{work}/s3"], **self.quiet)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in (self.daemon, self.server):
            if child and child.poll() is None:
                child.kill()
                child.wait()

    def configure(self, is_backed_up):
        config = f"""store = "store"
base = "base"
placeholders = false
adopt = false
[[listen]]
address = "unix:sock"
[http]
listen = ["127.0.0.1:{self.http}"]
[stripes]
scrub = "off"
[log]
file = "log"
"""
        if is_backed_up:
            config += f"""[backup]
to = "s3://bucket/x"
endpoint = "http://127.0.0.1:{self.s3}"
region = "us-east-1"
access_key_id = "an-id"
secret_access_key = "a-secret"
"""
        with open(f"{self.work}/c.toml", "w") as file:
            file.write(config)

    def start(self):
        self.daemon = subprocess.Popen([self.roundel, "serve", "--config", "c.toml"], **self.quiet)
        return Client(f"{self.work}/sock")

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()


def make_backup(given, place):
    """Not while it is fed: what is measured is the restore."""
    place.configure(False)
    client = place.start()
    begun = time.monotonic()
    names = [f"r{number}.rrd" for number in range(given.rrds)]
    definition = f"-b {START - 300} -s 300 DS:in:GAUGE:600:U:U DS:out:COUNTER:600:U:U {ARCHIVES}"
    for at in range(0, given.rrds, CHUNK):
        client.pipeline([f"CREATE {name} {definition}" for name in names[at:at + CHUNK]])
    print(f"created in {time.monotonic() - begun:.0f} s", flush=True)
    begun = time.monotonic()
    feed(client, names, given.rounds)
    print(f"fed in {time.monotonic() - begun:.0f} s", flush=True)
    fed = client.ask(f"FETCH r7.rrd AVERAGE {START} {START + 300 * given.rounds}")
    place.stop()
    place.configure(True)
    begun, now = time.monotonic(), time.time()
    place.start()
    wait_for(lambda: (metric(place.http, "roundel_backup_complete_seconds") or 0) > now)
    print(f"backed up in {time.monotonic() - begun:.0f} s", flush=True)
    place.stop()
    sizes = [tree_bytes(f"{place.work}/{part}") / 1e6 for part in ("store", "s3")]
    print(f"store {sizes[0]:.0f} MB, backup {sizes[1]:.0f} MB", flush=True)
    with open(f"{place.work}/fed.json", "w") as file:
        json.dump([fed[0], [line.decode() for line in fed[1]]], file)


def restore(given, place, run):
    place.configure(True)
    shutil.rmtree(f"{place.work}/store", ignore_errors=True)
    with open(f"{place.work}/fed.json") as file:
        fed = json.load(file)
    begun = time.monotonic()
    subprocess.run(
        [place.roundel, "restore", "--from", "s3://bucket/x", "--config", "c.toml", "--to", "store", "--early"],
        check=True, cwd=place.work)
    early = time.monotonic() - begun
    client = place.start()
    # Later than those of earlier runs, which went into the backup.
    first, _ = client.ask(f"UPDATE r5.rrd {int(time.time())}:1:{run}")
    assert first.startswith("0 "), first
    updated = time.monotonic() - begun
    first, lines = client.ask(f"FETCH r7.rrd AVERAGE {START} {START + 300 * given.rounds}")
    answered = time.monotonic() - begun
    assert [first, [line.decode() for line in lines]] == fed, "the restored RRD differs"
    wait_for(lambda: metric(place.http, "roundel_connections_total") is not None
             and metric(place.http, "roundel_restore_left_bytes") in (0, None))
    complete = time.monotonic() - begun
    lost = metric(place.http, "roundel_restore_lost_parts")
    print(f"{given.rrds} RRDs, {given.rounds} rounds: restore --early {early:.1f} s, first update answered after {updated:.1f} s, "
          f"first rows after {answered:.1f} s, complete after {complete:.1f} s, lost parts {lost or 0:.0f}; load {os.getloadavg()[0]:.1f}",
          flush=True)
    place.stop()


if __name__ == "__main__":
    main()
