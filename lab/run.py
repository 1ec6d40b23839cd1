#!/usr/bin/env python3
"""The lab: the five reports run again, each beside its peers, on this machine. Writes lab/RESULTS.md and its pictures.

What was measured is kept in DIR/lab.json (or full.json), part by part, so that an interrupted run goes on where it was. A run that is
complete, or was of another machine or other programs, is not taken up again. Needs root; parts that this machine cannot do are skipped,
and the results say why. `lab/README.md` has more.
"""

import argparse
import contextlib
import fcntl
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
import urllib.error
from pathlib import Path

import machine
import report

EXPERIMENTS = ("r5", "r4", "r1", "r3", "r2")


class Context:
    """What an experiment is given: the executable, a directory for its disk, and folders that are removed."""

    def __init__(self, roundel, work, full):
        self.roundel, self.work, self.full = str(Path(roundel).resolve()), Path(work), full

    def stack(self):
        return contextlib.ExitStack()

    def folder(self, stack):
        return stack.enter_context(tempfile.TemporaryDirectory(prefix="roundel-lab-"))


class Results:
    """What was measured, in a file."""

    def __init__(self, path, facts, again):
        """A run that was complete is gone on with only to measure some of it `again`."""
        self.path = path
        self.kept = {}
        if path.exists():
            self.kept = json.loads(path.read_text())
        if self.kept.get("facts") != facts or (self.kept.get("complete") and not again):
            self.kept = {"facts": facts, "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "parts": {}, "complete": False}
            self.save()

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.kept, indent=1) + "\n")
        new.replace(self.path)

    def has(self, experiment, part):
        return part in self.kept["parts"].get(experiment, {})

    def put(self, experiment, part, answer):
        self.kept["parts"].setdefault(experiment, {})[part] = answer
        self.save()


def alone(directory):
    """Takes the lock that lets one run at a time use the directory; it is held until this process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = open(directory / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"lab: another run uses {directory}: wait until it has ended, or give another --results and --work") from None
    return lock


def say(text):
    print(f"lab: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def announce(modules, full, results, work):
    """What the run will take, before it begins."""
    minutes, disk, memory = 0, 0, 0
    for name, module in modules.items():
        parts = module.parts(full)
        left = [part for part, _ in parts if not results.has(name, part)]
        plan = module.plan(full)
        takes = plan["minutes"] * len(left) / len(parts)
        minutes, disk, memory = minutes + takes, max(disk, plan["disk_mib"] * bool(left)), max(memory, plan["memory_mib"] * bool(left))
        print(f"lab:   {module.TITLE}: {len(left)} of {len(parts)} parts to do, about {takes:.0f} minutes", file=sys.stderr)
    print(f"lab: about {minutes:.0f} minutes in all, at most {disk / 1024:.1f} GiB at a time in {work} and {memory / 1024:.1f} GiB of memory; "
          "as root: loop devices, mounts, control groups. Ctrl-C ends it and removes what it has made; the next run goes on.", file=sys.stderr)


def measure(context, results, name, module, part, function):
    """One part: what was measured, or why it was not."""
    plan = module.plan(context.full)
    lacks = machine.missing(plan["programs"], plan["limited"])
    say(f"{name}: {part}" + (f": skipped: {'; '.join(lacks)}" if lacks else ""))
    if lacks:
        results.put(name, part, {"skipped": "; ".join(lacks)})
        return
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        answer = function(context)
    except machine.Skipped as why:
        answer = {"skipped": str(why)}
    # What a side does wrong is a result; what this machine does wrong ends the run.
    except (SystemExit, ConnectionError, urllib.error.URLError, ValueError) as why:
        if machine.ENDING:
            raise
        traceback.print_exc()
        answer = {"failed": str(why).removeprefix("lab: ")}
    answer.update(took=round(time.monotonic() - began, 1), load=[round(load, 2), round(os.getloadavg()[0], 2)])
    results.put(name, part, answer)
    if "failed" in answer or "skipped" in answer:
        say(f"{name}: {part}: {answer.get('failed') or answer['skipped']}")


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--full", action="store_true", help="the reports' own sizes as far as the disk allows: hours")
    words.add_argument("--only", default=",".join(EXPERIMENTS), help="r1,r2,r3,r4,r5; the others stay as they were measured")
    words.add_argument("--roundel", default="target/release/roundel")
    words.add_argument("--results", default="target/lab", help="the directory of what was measured")
    words.add_argument("--work", default="target/lab/work", help="the directory of the loop devices' files")
    words.add_argument("--again", action="store_true", help="measure the chosen experiments again")
    words.add_argument("--parts", default="", help="only the sides whose names contain one of these texts, separated by commas")
    words.add_argument("--report", action="store_true", help="only write the report of what was measured")
    given = words.parse_args()
    chosen = given.only.split(",")
    if set(chosen) - set(EXPERIMENTS):
        raise SystemExit(f"lab: no experiment {(set(chosen) - set(EXPERIMENTS)).pop()}: {', '.join(EXPERIMENTS)}")
    path = Path(given.results) / ("full.json" if given.full else "lab.json")
    if given.report:
        if not path.exists():
            raise SystemExit(f"lab: {path} is not there: nothing was measured yet; run the lab without --report, or give --results DIR"
                             + ("" if given.full else ", or --full for the results of a full run"))
        report.write(json.loads(path.read_text()), given)
        return
    if not Path(given.roundel).exists():
        raise SystemExit(f"lab: {given.roundel} is not there: cargo build --release -p roundel, or --roundel FILE")
    machine.end_on_signals()
    lock = alone(path.parent)
    context = Context(given.roundel, Path(given.work).resolve(), given.full)
    results = Results(path, machine.facts(context.roundel), given.again)
    modules = {name: importlib.import_module(name) for name in chosen}
    if given.again:
        for name in chosen:
            results.kept["parts"].pop(name, None)
    announce(modules, given.full, results, context.work)
    for name, module in modules.items():
        for part, function in module.parts(given.full):
            if not results.has(name, part) and any(text in part for text in given.parts.split(",")):
                measure(context, results, name, module, part, function)
    results.kept["complete"] = all(
        results.has(name, part) for name in EXPERIMENTS for part, _ in importlib.import_module(name).parts(given.full))
    results.kept["ended"] = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    results.save()
    report.write(results.kept, given)
    lock.close()
    say(f"the results are in {report.PATH}")


if __name__ == "__main__":
    main()
