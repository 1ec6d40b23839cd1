"""R3: 22,000 interfaces of ten sources each, 4 MB a file: updates by librrd, by a program that keeps files open, by rrdcached, by Roundel; and
what is computed of the rows."""

import resource
import subprocess
import time
from pathlib import Path

import machine
import sides
import stores

SOURCES = 10
STEP = 30
BEGIN = 11574 * 86400
# 52,000 rows of ten sources are 4.2 MB: two weeks of 30 s, of 5 minutes a month, of an hour a year.
ARCHIVES = (("AVERAGE", 1, 34600), ("AVERAGE", 10, 8700), ("AVERAGE", 120, 8700))
WORDS = (f"-s {STEP} " + " ".join(f"DS:ds{source}:GAUGE:{4 * STEP}:0:U" for source in range(SOURCES)) + " "
         + " ".join(f"RRA:{cf}:0.5:{pdps}:{rows}" for cf, pdps, rows in ARCHIVES))
BUFFER = 10
SIDES = ("advice RANDOM", "open once", "rrdcached", "Roundel, files", "Roundel, stripes")
FUNCTIONS = ("export", "percentile", "STDDEV", "moving average")
DAY_ROWS = 2880
TITLE = "R3: 10 sources an interface, 4 MB a file"
SOURCE = "S. Mikheev, Avalon, 2003"


def size(full):
    return {"interfaces": 4000 if full else 400, "passes": 60 if full else 20}


def plan(full):
    """What the experiment takes. The report's 22,000 files would be 92 GB."""
    given = size(full)
    return {"minutes": 40 if full else 6, "disk_mib": given["interfaces"] * 4.2 * 1.1 + 500, "memory_mib": 2500, "programs": [], "limited": False}


def parts(full):
    found = [(side, lambda context, side=side: measure(context, side, **size(full))) for side in SIDES]
    count = 400 if full else 100
    return found + [(f"functions, {who}", lambda context, who=who: functions(context, who, count)) for who in ("rrdtool", "Roundel, files", "Roundel")]


def name(index):
    return f"if{index:05}.rrd"


def values(number, count):
    """What the interfaces say in a pass: ten sources each."""
    return [":".join(str((index * 31 + number * 7 + source * 101) % 10000) for source in range(SOURCES)) for index in range(count)]


def measure(context, side, interfaces, passes):
    """Runs one side and returns what was counted."""
    with context.stack() as stack:
        disk = stack.enter_context(machine.Disk(context.work, int(interfaces * 4.25e6 * 1.05) + (400 << 20), inodes=interfaces * 2 + 2000))
        make = stores.Make(disk, None, context.folder(stack), context.roundel, [name(index) for index in range(interfaces)], BEGIN, WORDS)
        store = stores.store(side, make, BUFFER)
        stack.callback(store.end)
        disk.sync()
        # A first pass, or the first full buffer: files are opened and read.
        for number in range(1, BUFFER + 1):
            one_pass(store, number, interfaces)
        disk.sync()
        before, busy, total = disk.counters(), machine.cpu_seconds(store.process.pid), []
        for number in range(BUFFER + 1, BUFFER + 1 + passes):
            total.append(round(one_pass(store, number, interfaces), 4))
            # As between two passes 30 s apart.
            disk.sync()
        updates = interfaces * passes
        counted = machine.difference(disk.counters(), before)
        return {"side": side, "interfaces": interfaces, "passes": passes, "total": total,
                "cpu_us": round((machine.cpu_seconds(store.process.pid) - busy) / updates * 1e6, 3),
                "calls": calls(store, interfaces, BUFFER + passes + 1),
                "per_update": {key: round(value / updates, 5) for key, value in counted.items()}}


def one_pass(store, number, count):
    """Seconds of a pass: until the page cache has it, as RRDtool leaves it."""
    given, began = values(number, count), time.monotonic()
    store.take(BEGIN + STEP * number, given)
    if store.due():
        store.write()
    return time.monotonic() - began


def calls(store, count, number):
    """System calls per update, counted by strace over one full buffer; None if there is no strace."""
    if machine.which("strace") is None:
        return None
    with subprocess.Popen([machine.which("strace"), "-f", "-c", "-p", str(store.process.pid)], stderr=subprocess.PIPE, text=True) as strace:
        time.sleep(1)
        for one in range(store.buffer):
            one_pass(store, number + one, count)
        strace.terminate()
        lines = strace.stderr.read().splitlines()
    totals = [line.split() for line in lines if line.endswith(" total")]
    return round(int(totals[0][-2] if len(totals[0]) < 6 else totals[0][-3]) / count / store.buffer, 3) if totals else None


def script(which, source, out):
    """The graph language's words for a function over a day of all ten sources of one interface."""
    words = ["--start", str(BEGIN), "--end", str(BEGIN + DAY_ROWS * STEP)]
    for number in range(SOURCES):
        words.append(f"DEF:v{number}={source}:ds{number}:AVERAGE")
        if which == "export":
            words.append(f"XPORT:v{number}:ds{number}")
        elif which == "moving average":
            words += [f"CDEF:m{number}=v{number},3600,TREND", f"XPORT:m{number}:ds{number}"]
        else:
            function = "95,PERCENT" if which == "percentile" else "STDEV"
            words += [f"VDEF:p{number}=v{number},{function}", f"PRINT:p{number}:%.6lf"]
    return words


def functions(context, who, count):
    """A day of rows of some interfaces, and each function over all of them."""
    with context.stack() as stack:
        disk = stack.enter_context(machine.Disk(context.work, int(count * 4.25e6 * 1.05) + (400 << 20), inodes=20000))
        folder, names = context.folder(stack), [name(index) for index in range(count)]
        make = stores.Make(disk, None, folder, context.roundel, names, BEGIN, WORDS)
        store = stores.store("Roundel, stripes" if who == "Roundel" else "advice RANDOM", make)
        stack.callback(store.end)
        fill(store, names)
        took = {which: timed(context, who, which, make, store, folder) for which in FUNCTIONS}
        return {"side": who, "interfaces": count, "rows": DAY_ROWS, "seconds": {which: round(pair[0], 4) for which, pair in took.items()},
                "cpu": {which: round(pair[1], 3) for which, pair in took.items()}}


def fill(store, names, at_once=288):
    """Gives each RRD a day."""
    for first in range(1, DAY_ROWS + 1, at_once):
        lines = []
        for index, each in enumerate(names):
            words = (f"{BEGIN + STEP * number}:" + ":".join(str((index * 31 + number * number * 7 + source * 101) % 10007) for source in range(SOURCES))
                     for number in range(first, first + at_once))
            lines.append(f"update {each} " + " ".join(words))
        if isinstance(store, stores.Direct):
            store.tool.ask(lines)
        else:
            store.daemon.lines.batch(lines)


def timed(context, who, which, make, store, folder):
    """Seconds, and seconds of CPU, for a function over all interfaces: by one `rrdtool -`, or one `roundel query` and the daemon."""
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime + machine.cpu_seconds(store.process.pid)
    began, busy = time.monotonic(), cpu()
    if who == "rrdtool":
        # Else RRDtool consolidates to 400 rows first, a pixel each.
        verb = f"graph - --width {DAY_ROWS}" if which in ("percentile", "STDDEV") else f"xport --maxrows {DAY_ROWS}"
        store.tool.ask([f"{verb} " + " ".join(script(which, each, folder)) for each in make.names])
        return time.monotonic() - began, cpu() - busy
    words = [context.roundel, "query", *script(which, "if*.rrd", folder), "--format", "csv", "--output", f"{folder}/out"]
    if who == "Roundel":
        words += ["--daemon", store.daemon.address]
    machine.run(*words, cwd=make.disk.mount, env={"PATH": "/usr/bin:/bin", "TZ": "UTC"})
    took = time.monotonic() - began, cpu() - busy
    if Path(folder, "out").stat().st_size < 100:
        raise SystemExit(f"lab: roundel query gave nothing: {which}")
    return took
