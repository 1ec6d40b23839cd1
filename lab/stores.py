"""Stores that take passes of updates in simulated time, for R2 and R3: RRDtool, buffers in front of it, rrdcached, a program that keeps files
open, and Roundel. `Make` says what they are given."""

from dataclasses import dataclass
from pathlib import Path

import sides

# Stops librrd from giving advice: what reports before 2007 measured.
NO_ADVICE = "int madvise(void *at, unsigned long length, int advice) { (void)at; (void)length; (void)advice; return 0; }\n"
# A store in limited memory keeps fewer rows back than the usual 64 MiB.
ROUNDEL = "[stripes]\nopen_bytes = 8388608\nlog_bytes = 16777216\nshards = 1\n[limits]\nmemory = \"8 MiB\"\n"


@dataclass
class Make:
    """Where and for what a store is made: its disk, group, a folder for programs, the words of `create` and the time of creation."""
    disk: object
    group: object
    folder: str
    roundel: str
    names: list
    begin: int
    words: str


def create_files(make):
    """RRDs as files, by RRDtool."""
    tool = sides.Tool(make.disk.mount)
    tool.ask([f"create {name} -b {make.begin} {make.words}" for name in make.names])
    tool.end()


def no_advice(folder):
    """A library that, loaded first, makes librrd's advice to the kernel go nowhere."""
    source, library = Path(folder) / "no_advice.c", Path(folder) / "no_advice.so"
    source.write_text(NO_ADVICE)
    sides.machine.run("gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source))
    return library


class Direct:
    """`rrdtool -`: each update is written when it comes; with `buffer` passes kept back, an RRD's values together."""

    def __init__(self, make, preload=None, buffer=1):
        create_files(make)
        make.disk.fresh()
        self.names, self.buffer, self.kept = make.names, buffer, []
        self.tool = sides.Tool(make.disk.mount, make.group, preload)
        self.process = self.tool.process

    def take(self, when, values):
        self.kept.append([f"{when}:{value}" for value in values])
        if self.buffer == 1:
            self.write()

    def due(self):
        return len(self.kept) >= self.buffer

    def write(self):
        if self.kept:
            self.tool.ask([f"update {name} {' '.join(words)}" for name, words in zip(self.names, zip(*self.kept))])
            self.kept = []

    def end(self):
        self.tool.process.kill()
        self.tool.process.wait()


class OpenOnce:
    """A program of the lab that keeps all files open and their headers in memory (open_once.c)."""

    def __init__(self, make):
        create_files(make)
        make.disk.fresh()
        program = sides.compiled(make.folder, "open_once")
        sides.more_files(len(make.names) + 100)
        self.tool = sides.Tool(make.disk.mount, make.group, program=[program, *make.names])
        self.process = self.tool.process
        self.buffer = 1

    def take(self, when, values):
        self.tool.ask_lines([f"{index} {when} {value.replace(':', ' ')}" for index, value in enumerate(values)])

    def due(self):
        return False

    def write(self):
        pass

    def end(self):
        self.tool.process.kill()
        self.tool.process.wait()


class Served:
    """A daemon of rrdcached's protocol, which keeps `buffer` passes back; `files`: RRDs are files."""

    def __init__(self, make, daemon, buffer, files):
        self.names, self.buffer, self.passes, self.sent, self.daemon = make.names, buffer, 0, 0, daemon
        self.process = daemon.process
        if not files:
            daemon.lines.pipelined([f"CREATE {name} -b {make.begin} {make.words}" for name in make.names])
        self.before = daemon.lines.statistics()["DataSetsWritten"] if files else None

    def take(self, when, values):
        self.daemon.lines.batch([f"UPDATE {name} {when}:{value}" for name, value in zip(self.names, values)])
        self.passes += 1
        self.sent += len(values)

    def due(self):
        return self.passes % self.buffer == 0

    def write(self):
        # In stripes nothing waits for being written: what is taken is logged.
        if self.before is not None:
            self.daemon.lines.flush_all(self.before + self.sent)

    def end(self):
        self.daemon.end()


def store(kind, make, buffer=12):
    """The store of a name."""
    base, where = make.disk.mount, make.disk.mount / "store"
    if kind == "readahead":
        return Direct(make, no_advice(make.folder))
    if kind == "advice RANDOM":
        return Direct(make)
    if kind == "buffering":
        return Direct(make, no_advice(make.folder), buffer)
    if kind == "buffering + RANDOM":
        return Direct(make, buffer=buffer)
    if kind == "open once":
        return OpenOnce(make)
    if kind == "Roundel, stripes":
        daemon = sides.roundel(make.roundel, base / "tree", where, "stripes", make.group, ROUNDEL, placeholders=False)
        return Served(make, daemon, 1, files=False)
    create_files(make)
    make.disk.fresh()
    if kind == "rrdcached":
        return Served(make, sides.rrdcached(base, make.group, journal=base / "journal"), buffer, files=True)
    daemon = sides.roundel(make.roundel, base, where, "files", make.group, ROUNDEL.partition("[limits]")[1] + ROUNDEL.partition("[limits]")[2])
    return Served(make, daemon, buffer, files=True)
