#!/usr/bin/env python3
"""How far one machine goes: 20,000 to 5,000,000 RRDs of Ganglia's geometry in one Roundel, and 7,000,000 every 15 s, the public high-water mark.

Writes lab/scale.md of lab/scale.json's figures; a size that is there is not measured again. Fed by `bench load` (crates/bench). No root.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
from pathlib import Path

import machine
import pictures
import sides
from pictures import number

LAB = Path(__file__).parent
SIZES = (20_000, 100_000, 1_000_000, 5_000_000)
# Quantcast, LISA 2015: 7 M metrics every 15 s, 480,000 values a second, on two machines.
MARK, MARK_STEP, MARK_PASSES = 7_000_000, 15, 4
ROUNDS = 12
# What an RRD may take in memory and on disk, to say beforehand whether there is room; measured before, with room to spare.
MEMORY_EACH, DISK_EACH = 1500, 1500


def parsed(text):
    """What `bench load` printed, as numbers."""
    found = {}
    for key, pattern, scale in (
            ("created", r"^created .*: ([\d.]+)/s", 1), ("accepted", r"^accepted .*: ([\d.]+) k/s", 1000), ("refused", r"k/s, (\d+) refused", 1),
            ("client_us", r"client CPU ([\d.]+) us", 1), ("drained", r"^drained .*: ([\d.]+) k/s", 1000), ("daemon_us", r"= ([\d.]+) us a value", 1),
            ("bytes", r"wrote ([\d.]+) bytes", 1)):
        match = re.search(pattern, text, re.MULTILINE)
        if match:
            found[key] = float(match[1]) * scale
    return found


def load(given, daemon, count, first, rounds, create=False, pace=0):
    """One run of the feeder."""
    words = [given.bench, "load", "--socket", daemon.address, "--workload", "ganglia", "--rrds", count, "--first-round", first, "--rounds", rounds,
             "--pid", daemon.process.pid, "--pace", pace, *([] if create else ["--no-create"])]
    return parsed(machine.run(*map(str, words)))


def tree_bytes(path):
    return sum(each.stat().st_blocks * 512 for each in Path(path).rglob("*") if each.is_file())


def listing(daemon):
    """Seconds and bytes of LIST of everything, read as it comes."""
    began, size = time.monotonic(), 0
    daemon.lines.file.write(b"LIST RECURSIVE /\n")
    daemon.lines.file.flush()
    count = int(daemon.lines.file.readline().split()[0])
    for _ in range(count):
        size += len(daemon.lines.file.readline())
    return {"list_seconds": time.monotonic() - began, "list_bytes": size, "listed": count}


def search(http, count):
    """Seconds of a search for one host's RRDs: the first, which may have to prepare something, and the median of nine others."""
    seconds = []
    for place in range(10):
        host = place * (count // 70) // 10
        began = time.monotonic()
        try:
            sides.get(http, "/api/v1/search", [("q", f"host-{host:05}"), ("limit", 50)])
        except urllib.error.HTTPError as refusal:
            return {"search_refused": refusal.read().decode()[:300]}
        seconds.append(time.monotonic() - began)
    return {"search_first": seconds[0], "search": sorted(seconds[1:])[4]}


def last(daemon, index):
    return int(daemon.lines.command(f"LAST host-{index // 70:05}/metric-{index % 70:02}.rrd")[0].split()[1])


def restart(daemon, count):
    """Seconds from the start of a daemon that was killed until an RRD's last update is answered."""
    want = last(daemon, count - 1)
    daemon.kill()
    began = time.monotonic()
    daemon.launch()
    if last(daemon, count - 1) != want:
        raise SystemExit("lab: an acknowledged value was lost")
    return {"restart": time.monotonic() - began}


def checkpoint(daemon):
    """Seconds and bytes of a stop, which writes all that is in memory, and of the start after it."""
    before = seen = written(daemon.process.pid)
    daemon.lines.close()
    began = time.monotonic()
    daemon.process.terminate()
    while daemon.process.poll() is None:
        seen = written(daemon.process.pid) or seen
        time.sleep(0.02)
    stopped = time.monotonic() - began
    began = time.monotonic()
    daemon.launch()
    return {"stop_seconds": stopped, "stop_bytes": seen - before, "start_seconds": time.monotonic() - began}


def written(pid):
    """Bytes that a process has written, or None if it has ended."""
    try:
        return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/io").read_text().splitlines() if line.startswith("write_bytes"))
    except (OSError, StopIteration):
        return None


def measure(given, count, mark=False):
    """One size: all figures of its row."""
    free, ram = shutil.disk_usage(given.work).free, int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    if free < count * DISK_EACH + (2 << 30) or ram < count * MEMORY_EACH + (2 << 30):
        return {"rrds": count, "skipped": f"{free >> 30} GiB of disk and {ram >> 30} GiB of memory are free, and this may take "
                f"{(count * DISK_EACH >> 30) + 2} and {(count * MEMORY_EACH >> 30) + 2}"}
    with tempfile.TemporaryDirectory(dir=given.work, prefix="scale-") as place:
        http = sides.free_port()
        # A list of names of millions of RRDs is more than what clients may have the daemon hold by default.
        sections = "[limits]\nstore_memory = \"18 GiB\"\nmemory = \"3 GiB\"\n"
        daemon = sides.roundel(given.roundel, f"{place}/rrd", f"{place}/store", http=http, placeholders=False, sections=sections)
        try:
            row = {"rrds": count, "load": round(os.getloadavg()[0], 1), **load(given, daemon, count, 0, 1, create=True)}
            row["created_memory"] = machine.memory_bytes(daemon.process.pid) / count
            if mark:
                row["passes"] = passes(given, daemon, count)
            else:
                row.update(load(given, daemon, count, 1, ROUNDS), rounds=ROUNDS)
            row["memory"] = machine.memory_bytes(daemon.process.pid) / count
            if not mark:
                row.update(listing(daemon))
                row.update(search(http, count))
            row.update(restart(daemon, count))
            row.update(checkpoint(daemon))
            row["disk"] = tree_bytes(f"{place}/store") / count
            row["load_end"] = round(os.getloadavg()[0], 1)
            return row
        finally:
            daemon.end()


def passes(given, daemon, count):
    """Four passes that begin 15 s apart: seconds that each took, and CPU."""
    seen, begin = [], time.monotonic()
    for number_ in range(MARK_PASSES):
        time.sleep(max(0, begin + MARK_STEP * number_ - time.monotonic()))
        began = time.monotonic()
        one = load(given, daemon, count, 1 + number_, 1)
        seen.append({"late": round(began - begin - MARK_STEP * number_, 2), "seconds": round(time.monotonic() - began, 2), **one})
        print(f"lab: pass {number_ + 1}: {seen[-1]}", file=sys.stderr)
    return seen


def table(rows):
    """The rows of sizes in Markdown, a column each."""
    figures = (("created/s", "created", 1), ("values/s taken", "accepted", 1), ("CPU of the daemon, us/value", "daemon_us", 1), ("bytes written per value", "bytes", 1),
               ("memory per RRD after creation, bytes", "created_memory", 1), ("memory per RRD after the values, bytes", "memory", 1),
               ("kill -9, until the first answer, s", "restart", 1), ("stop, which writes everything, s", "stop_seconds", 1), ("start after it, s", "start_seconds", 1),
               ("LIST of everything, s", "list_seconds", 1), ("first search, ms", "search_first", 1000), ("another search, ms", "search", 1000),
               ("disk per RRD, bytes", "disk", 1), ("rounds of values", "rounds", 1), ("load of the machine before", "load", 1))
    lines = ["| | " + " | ".join(f"{row['rrds']:,}" for row in rows) + " |", "|---|" + "---|" * len(rows)]
    for title, key, scale in figures:
        lines.append(f"| {title} | " + " | ".join(number(row[key] * scale) if key in row else "-" for row in rows) + " |")
    return "\n".join(lines)


def bends(rows):
    """Between which sizes a figure for one value or RRD grows by more than a quarter, as sentences made of the figures."""
    found = []
    for title, key, each in (("CPU per value", "daemon_us", False), ("memory per RRD", "memory", False), ("disk per RRD", "disk", False),
                             ("restart per RRD", "restart", True), ("stop per RRD", "stop_seconds", True), ("LIST per RRD", "list_seconds", True)):
        known = [(row["rrds"], row[key] / (row["rrds"] if each else 1)) for row in rows if row.get(key)]
        for (few, small), (many, large) in zip(known, known[1:]):
            if large > 1.25 * small:
                found.append(f"* {title} grows {large / small:.2f} times from {few:,} to {many:,} RRDs.")
    return found or ["* No figure for one value or one RRD grows by more than a quarter from a size to the next."]


def write(kept):
    """Writes lab/scale.md and its picture."""
    rows = [kept["sizes"][str(size)] for size in SIZES if str(size) in kept["sizes"]]
    measured = [row for row in rows if "skipped" not in row]
    pictures.lines(LAB / "scale", "One Roundel, 15 s, three archives (Ganglia)", "RRDs", "microseconds of CPU per value; bytes of memory per RRD; milliseconds of another search",
                   [("CPU us/value", [(row["rrds"], row.get("daemon_us")) for row in measured]), ("memory bytes/RRD", [(row["rrds"], row["memory"]) for row in measured]),
                    ("search ms", [(row["rrds"], 1000 * row["search"]) for row in measured if "search" in row])], log_x=True, log_y=True)
    facts = "\n".join(f"| {name} | {value} |" for name, value in kept["facts"].items())
    words = [f"""# How far one machine goes

Written by `lab/scale.py` of what it measured ({kept["when"]}). Ganglia's geometry: 1 data source, AVERAGE of 15 s x 5,856, 1 min x 20,160, 10 min x 52,704; a `.rrd` file of it has 631 kB.
Client (`bench load`, one connection, BATCH) and daemon share the cores. Again: `lab/scale.py --again`.

| machine | |
|---|---|
{facts}

{pictures.embed("scale", "CPU, memory and search by number of RRDs")}

{table(measured)}

Where it bends, by these figures:

{chr(10).join(bends(measured))}

Why: rows wait in memory until there are 64 MiB of them (`open_bytes`), so that with few RRDs none are written while values arrive, and with many both bytes and CPU of a value contain segments and checkpoints. A
restart after kill -9 checks the whole log before the first answer, and a stop writes all rows and all heads; the start after it has no log to read. LIST is a line of text for each RRD, and the first search makes a list of all names
in memory. Fixed costs (buffers, 64 MiB arena) are most of the memory per RRD when there are few.
"""]
    words += [f"* {row['rrds']:,} RRDs: search was refused: {row['search_refused']}\n" for row in measured if "search_refused" in row]
    words += [f"* {row['rrds']:,} RRDs: skipped: {row['skipped']}\n" for row in rows if "skipped" in row]
    mark = kept["sizes"].get(f"mark-{MARK}")
    if mark:
        words.append(of_mark(mark))
    (LAB / "scale.md").write_text("\n".join(words))


def of_mark(mark):
    """The section about the high-water mark."""
    title = f"## {mark['rrds']:,} RRDs every {MARK_STEP} s\n\nQuantcast (LISA 2015) ran 7 M metrics every 15 s, 480,000 values a second, with Ganglia and RRDtool on two machines.\n"
    if "skipped" in mark:
        return f"{title}\nNot shown here: {mark['skipped']}\n"
    rows = "\n".join(f"| {place} | {one['late']} | {one['seconds']} | {number(mark['rrds'] / one['accepted'])} | {number(one.get('accepted', 0))} | {number(one.get('daemon_us', 0))} | {number(one.get('client_us', 0))} |"
                     for place, one in enumerate(mark["passes"], 1))
    slowest = max(mark["rrds"] / one["accepted"] for one in mark["passes"])
    mean = sum(one["seconds"] for one in mark["passes"]) / len(mark["passes"])
    verdict = (f"The daemon had each pass within {number(slowest)} s of its first byte, of {MARK_STEP} s there are: {'it keeps up' if slowest <= MARK_STEP else 'it does not keep up'}. With the feeder's own "
               f"start, which makes all names again each time, passes took {number(mean)} s on average{', so that some began late' if any(one['late'] > 0.5 for one in mark['passes']) else ''}. Load {mark['load']} before "
               f"and {mark['load_end']} after, on {os.cpu_count()} processors: over 2 or 3, other programs ran beside it.")
    return (f"{title}\n| pass | begun late, s | took, s | of that, from the first byte to the last answer | values/s | CPU of the daemon, us/value | of the client |\n|---|---|---|---|---|---|---|\n{rows}\n\n{verdict} "
            f"Memory: {number(mark['memory'])} bytes per RRD; disk: {number(mark['disk'])}; created at {number(mark['created'])}/s; after kill -9 the first answer came after {number(mark['restart'])} s.\n")


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--roundel", default="target/release/roundel")
    words.add_argument("--bench", default="target/release/bench")
    words.add_argument("--work", default="target/lab", help="where stores are made and removed")
    words.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of RRDs; empty: none")
    words.add_argument("--no-mark", action="store_true", help="without the 7,000,000")
    words.add_argument("--again", action="store_true", help="measure all again")
    given = words.parse_args()
    machine.end_on_signals()
    path = LAB / "scale.json"
    kept = json.loads(path.read_text()) if path.exists() and not given.again else {"sizes": {}}
    kept.update(facts=machine.facts(given.roundel), when=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))
    wanted = [(int(word), str(int(word)), False) for word in given.sizes.split(",") if word] + ([] if given.no_mark else [(MARK, f"mark-{MARK}", True)])
    print("lab: up to 12 GiB of disk and 12 GiB of memory for the largest size; half an hour on two quiet cores", file=sys.stderr)
    for count, name, mark in wanted:
        if name not in kept["sizes"]:
            print(f"lab: {count} RRDs", file=sys.stderr)
            kept["sizes"][name] = measure(given, count, mark)
            path.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"lab: {kept['sizes'][name]}", file=sys.stderr)
    write(kept)


if __name__ == "__main__":
    main()
