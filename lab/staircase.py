#!/usr/bin/env python3
"""Counts what Debian's librrd and rrdcached read and write per update while memory is limited, over the whole staircase.

RRDs with the archives that MRTG (or another preset) makes lie on a loop device of their own; `rrdtool -` (or rrdcached) updates one after the other in
a control group whose memory is limited, pass by pass, in simulated time. The device's counters say how many pages were read and
written, memory.stat the faults. Each point is saved once it is measured (RESULTS.json), so that an interrupted run goes on where it
was. Needs root; cleans up. `lab/README.md` has the commands.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import sides
import stores

# A whole number of days, so that the archives' rows end where days do.
START = 11574 * 86400
# Linux writes what was changed after so many seconds.
WRITTEN_AFTER = 30


@dataclass(frozen=True)
class Geometry:
    """RRDs as a program makes them; the presets of `roundel capacity`, whose names these are."""
    name: str
    step: int
    source: str
    sources: int
    functions: tuple
    spans: tuple
    # After so many passes everything has happened that happens often enough to count.
    period: int

    @property
    def file_bytes(self):
        """The length of a file: fixed header, 120 bytes for each data source and archive, what is live, and the rows."""
        archives = len(self.functions) * len(self.spans)
        rows = len(self.functions) * sum(rows for _, rows in self.spans)
        header = 128 + 16 + (120 + 112) * self.sources + (120 + 8 + 80 * self.sources) * archives
        return header + 8 * self.sources * rows

    def words(self):
        """As `rrdtool create` takes them."""
        sources = " ".join(f"DS:ds{number}:{self.source}" for number in range(self.sources))
        return f"-s {self.step} {sources} " + " ".join(f"RRA:{cf}:0.5:{pdps}:{rows}" for cf in self.functions for pdps, rows in self.spans)

    def updates(self, count, number):
        """The updates of a pass, as words after `update`."""
        when = START + self.step * number
        return [f"update {name(index)} {when}:" + ":".join(str((1000 - 300 * source) * number + index) for source in range(self.sources))
                for index in range(count)]


GEOMETRIES = {one.name: one for one in (
    Geometry("mrtg", 300, "COUNTER:600:0:U", 2, ("AVERAGE", "MAX"), ((1, 800), (6, 800), (24, 800), (288, 800)), 288),
    Geometry("collectd", 10, "GAUGE:20:U:U", 1, ("AVERAGE", "MIN", "MAX"), ((1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)), 350),
    Geometry("ganglia", 15, "GAUGE:120:U:U", 1, ("AVERAGE",), ((1, 5856), (4, 20160), (40, 52704)), 240),
    Geometry("cacti", 300, "COUNTER:600:0:U", 2, ("AVERAGE", "MIN", "MAX", "LAST"), ((1, 600), (6, 700), (24, 775), (288, 797)), 288))}
MRTG = GEOMETRIES["mrtg"]
CREATE, FILE_BYTES = MRTG.words(), MRTG.file_bytes
# Below so many pages a file nothing lives longer than these passes.
SHORT_LIVED = (3.0, 48)
# What the group's memory holds besides pages of files: the program, and for each file inode, directory entry and tree nodes.
PROGRAM_BYTES = 6 << 20
KERNEL_BYTES_PER_FILE = 2300


def name(index):
    return f"{index:06}.rrd"


def create(disk, count, geometry=MRTG):
    tool = sides.Tool(disk.mount)
    tool.ask([f"create {name(index)} -b {START} {geometry.words()}" for index in range(count)])
    tool.end()
    size = (disk.mount / name(0)).stat().st_size
    assert size == geometry.file_bytes, f"an RRD has {size} bytes and not {geometry.file_bytes}"


def measure(disk, side, count, pages, warm, passes, first, geometry=MRTG):
    """Runs `warm` and then `passes` passes with memory for `pages` pages a file; returns what was counted and the next pass."""
    limit = int(pages * machine.PAGE * count) + PROGRAM_BYTES + KERNEL_BYTES_PER_FILE * count
    if pages < SHORT_LIVED[0]:
        warm = min(warm, SHORT_LIVED[1])
    disk.fresh()
    batch = side.get("batch", 1)
    with machine.Group(limit) as group:
        worker = sides.rrdcached(disk.mount, group) if side["kind"] == "rrdcached" else sides.Tool(disk.mount, group, side.get("preload"))
        caches, seconds, start, sent = [], [], None, 0
        try:
            for number in range(first, first + warm + passes):
                if number == first + warm:
                    start = (group.counters(), disk.counters())
                began = time.monotonic()
                if side["kind"] == "rrdcached":
                    worker.lines.batch(geometry.updates(count, number))
                    sent += count
                    if (number - first + 1) % batch == 0:
                        worker.lines.flush_all(sent)
                    disk.sync()
                else:
                    lines, share = geometry.updates(count, number), -(-count // max(1, geometry.step // WRITTEN_AFTER))
                    for at in range(0, count, share):
                        worker.ask(lines[at:at + share])
                        if number % max(1, WRITTEN_AFTER // geometry.step) == 0:
                            disk.sync()
                if start:
                    seconds.append(time.monotonic() - began)
                    caches.append(group.counters()["cache"])
            end = (group.counters(), disk.counters())
        finally:
            worker.end()
    values = count * passes
    counted = {**machine.difference(end[0], start[0]), **machine.difference(end[1], start[1])}
    per_update = {key: round(counted[key] / values, 5)
                  for key in ("pgmajfault", "workingset_refault_file", "pages_read", "read_requests", "pages_written")}
    per_file = {key: round(end[0][key] / count) for key in ("anonymous", "kernel")}
    return {
        "preset": geometry.name, "side": side["name"], "rrds": count, "wanted_pages": pages, "limit": limit, "passes": passes, "warm": warm,
        "cache_pages": round(sum(caches) / len(caches) / machine.PAGE / count, 3),
        "pass_seconds": round(sum(seconds) / len(seconds), 3), "per_update": per_update, "bytes_per_file": per_file,
    }, first + warm + passes


def chosen(names, folder):
    """What is measured, by name."""
    made = []
    for word in names:
        kind, _, batch = word.partition(":")
        side = {"name": word, "kind": kind}
        if kind == "rrdcached":
            side["batch"] = int(batch or 12)
        elif kind == "no-advice":
            side["preload"] = stores.no_advice(folder)
        elif kind != "librrd":
            raise SystemExit(f"lab: no side \"{word}\": librrd, no-advice, rrdcached:BATCH")
        made.append(side)
    return made


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--preset", default="mrtg", choices=list(GEOMETRIES))
    words.add_argument("--rrds", type=int, default=800)
    words.add_argument("--pages", default="0.7,2,3.5,4.2,5.2,6.2,7.2,8.2,9.5,12",
                       help="memory for that many pages of each file")
    words.add_argument("--sides", default="librrd", help="librrd, no-advice, rrdcached:BATCH; separated by commas")
    words.add_argument("--passes", type=int, help="passes that are counted [default: a period, 288 for MRTG]")
    words.add_argument("--warm", type=int, help="passes before [default: a period and 24]")
    words.add_argument("--work", default="/dev/shm/roundel-lab", help="the directory of the loop device's file")
    words.add_argument("--results", default=str(Path(__file__).parent / "staircase.json"))
    given = words.parse_args()
    lacks = machine.missing()
    if lacks:
        raise SystemExit("lab: this experiment needs " + "; and ".join(lacks))
    machine.end_on_signals()
    path = Path(given.results)
    known = json.loads(path.read_text()) if path.exists() else []
    points = [float(word) for word in given.pages.split(",")]
    geometry = GEOMETRIES[given.preset]
    given.passes = given.passes or geometry.period
    given.warm = given.warm or geometry.period + 24
    size = given.rrds * (geometry.file_bytes + 8192) + (64 << 20)
    print(f"lab: {given.rrds} RRDs on {size >> 20} MiB in {given.work}; {len(points)} points of "
          f"{given.warm + given.passes} passes, one to four minutes each", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, machine.Disk(given.work, size) as disk:
        create(disk, given.rrds, geometry)
        number = 1
        for side in chosen(given.sides.split(","), folder):
            for pages in points:
                key = (geometry.name, side["name"], given.rrds, pages, given.passes)
                if any((one.get("preset", "mrtg"), one["side"], one["rrds"], one["wanted_pages"], one["passes"]) == key for one in known):
                    continue
                # Whole periods, so that every point has the same boundaries.
                number += -(number - 1) % geometry.period
                point, number = measure(disk, side, given.rrds, pages, given.warm, given.passes, number, geometry)
                known.append(point)
                path.write_text("[\n" + ",\n".join(json.dumps(one) for one in known) + "\n]\n")
                print(json.dumps(point), file=sys.stderr)


if __name__ == "__main__":
    main()
