#!/usr/bin/env python3
"""Writes lab/staircase.md and its pictures: what `staircase.py` measured beside `roundel capacity`, model and simulation."""

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path

LAB = Path(__file__).parent
# As in `roundel capacity`: what a file takes of the kernel's memory; it is no part of the measured cache.
KERNEL_BYTES_PER_FILE = 2400
# And what rrdcached keeps for an update that waits.
HELD_BYTES = 45
PAGE = 4096


def capacity(roundel, point, policy):
    """The answer of `roundel capacity --simulate` for the cache of a measured point."""
    kind, _, batch = point["side"].partition(":")
    layout = {"librrd": ["advice"], "no-advice": ["readahead"], "rrdcached": ["rrdcached", "--batch", batch]}[kind]
    held = HELD_BYTES * int(batch or 0)
    memory = int(point["rrds"] * (point["cache_pages"] * PAGE + KERNEL_BYTES_PER_FILE + held))
    words = ["capacity", "--preset", point.get("preset", "mrtg"), "--rrds", str(point["rrds"]), "--memory", str(memory), "--json", "--simulate",
             "--policy", policy, "--layout", *layout]
    return json.loads(subprocess.check_output([roundel, *words]))


def off(value, measured):
    return f"{value:.4f} ({100 * (value / measured - 1):+.0f} %)" if measured > 0.001 else f"{value:.4f}"


def row(roundel, point):
    linux, lru = (capacity(roundel, point, policy) for policy in ("linux", "lru"))
    reads = "pages_read" if point["side"] == "no-advice" else "faults"
    measured = point["per_update"]["pages_read"]
    model = lru["load"]["faults"]
    if reads == "pages_read":
        model *= lru["geometry"]["file_pages"]
    writes = lru["load"]["writes"]
    return (f"| {point.get('preset', 'mrtg')} | {point['side']} | {point['cache_pages']:.2f} | {measured:.4f} | {off(model, measured)} "
            f"| {off(lru['simulation'][reads], measured)} | {off(linux['simulation'][reads], measured)} "
            f"| {point['per_update']['pages_written']:.3f} | {off(writes, point['per_update']['pages_written'])} "
            f"| {point['pass_seconds']:.2f} |")


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--roundel", default="target/release/roundel")
    given = words.parse_args()
    points = json.loads((LAB / "staircase.json").read_text())
    points.sort(key=lambda point: (point.get("preset", "mrtg") != "mrtg", point.get("preset", "mrtg"), point["side"], point["cache_pages"]))
    rows = "\n".join(row(given.roundel, point) for point in points)
    template = (LAB / "staircase.in.md").read_text()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    rrdtool = subprocess.run(["rrdtool", "--version"], capture_output=True, text=True).stdout.split(" ")[1]
    machine = f"{os.cpu_count()} processors, {memory} MiB, Linux {platform.release()}, rrdtool {rrdtool}"
    (LAB / "staircase.md").write_text(template.replace("@rows@", rows).replace("@machine@", machine))
    shown = [point for point in points if point["side"] == "librrd" and point.get("preset", "mrtg") == "mrtg"]
    (LAB / "librrd.json").write_text(json.dumps(shown))
    try:
        for name, shade in (("staircase.svg", []), ("staircase-dark.svg", ["--dark"])):
            subprocess.run([given.roundel, "capacity", "--preset", "mrtg", "--simulate", "--policy", "linux", "--rrds", "800",
                            "--graph", str(LAB / name), "--points", str(LAB / "librrd.json"), *shade],
                           check=True, stdout=subprocess.DEVNULL)
    finally:
        (LAB / "librrd.json").unlink()


if __name__ == "__main__":
    main()
