"""R2: the world's largest MRTG: targets against page faults and the time of a pass, in limited memory."""

import time

import machine
import staircase
import stores

STEP = 300
DAY = staircase.MRTG.period
# MRTG's archives, as in the staircase.
WORDS = staircase.CREATE
BEGIN = staircase.START
# Passes that a buffer keeps back: an hour.
BUFFER = 12
SIDES = ("readahead", "advice RANDOM", "buffering", "buffering + RANDOM", "rrdcached", "Roundel, files", "Roundel, stripes")
BUFFERED = SIDES[2:6]
POINTS = ("0.7", "3.5", "4.2", "5.2", "7.2", "9.5")
TITLE = "R2: page faults and time of a pass, in limited memory"
SOURCE = "D. Plonka, A. Gupta, D. Carder, LISA 2007"


def size(full):
    if full:
        return {"counts": (10000, 40000, 160000), "memory": 1 << 30, "requests": 2000, "warm": 12, "passes": 24}
    return {"counts": (750, 2000, 4000), "memory": 48 << 20, "requests": 8000, "warm": 4, "passes": 12}


def plan(full):
    """What the experiment takes."""
    given = size(full)
    rrds = max(given["counts"])
    return {"minutes": 300 if full else 9, "disk_mib": rrds * 114_000 * 1.15 / (1 << 20) + 300, "memory_mib": 2000, "programs": [], "limited": True}


def parts(full):
    given = size(full)
    counts, rest = given["counts"], {key: value for key, value in given.items() if key != "counts"}
    found = [(f"{side}, {count} RRDs", lambda context, side=side, count=count: measure(context, side, count, **rest))
             for count in counts for side in SIDES]
    # The staircase takes whole days of simulated time, and half an hour.
    return found if not full else found + [(f"staircase, {pages} pages", lambda context, pages=pages: step(context, float(pages))) for pages in POINTS]


def values(number, count):
    """What the RRDs are given in a pass."""
    return [f"{1000 * number + index}:{700 * number + index}" for index in range(count)]


def measure(context, side, count, memory, requests, warm, passes):
    """Runs one side with so many RRDs and returns what was counted."""
    with context.stack() as stack:
        folder = context.folder(stack)
        room = int(count * (staircase.FILE_BYTES + 8192) * 1.1) + (200 << 20)
        disk = stack.enter_context(machine.Disk(context.work, room, inodes=count * 2))
        group = stack.enter_context(machine.Group(memory))
        names = [staircase.name(index) for index in range(count)]
        make = stores.Make(disk, group, folder, context.roundel, names, BEGIN, WORDS)
        store = stores.store(side, make, BUFFER)
        stack.callback(store.end)
        disk.limit(requests, group)
        # So that nothing waits for the limit while the sides end.
        stack.callback(disk.unlimit)
        warm = BUFFER if side in BUFFERED else warm
        # The counted passes are always the first ones of a day, so that the same archives move.
        first, poll, total, before = DAY + 1 - warm, [], [], None
        for number in range(first, DAY + 1 + passes):
            if number == DAY + 1:
                disk.sync()
                before, faults, busy = disk.counters(), group.counters(), machine.cpu_seconds(store.process.pid)
            taken, whole = one_pass(disk, store, number, count)
            if before:
                poll.append(round(taken, 3))
                total.append(round(whole, 3))
        counted = machine.difference(disk.counters(), before)
        updates = count * passes
        per_update = {key: round(value / updates, 5) for key, value in counted.items()}
        per_update["major_faults"] = round((group.counters()["pgmajfault"] - faults["pgmajfault"]) / updates, 5)
        return {"side": side, "rrds": count, "memory": memory, "requests": requests, "per_update": per_update, "poll": poll, "total": total,
                "cpu_us": round((machine.cpu_seconds(store.process.pid) - busy) / updates * 1e6, 2)}


def one_pass(disk, store, number, count):
    """Gives the store a pass. Returns seconds until it was taken, and until it was written as far as the store wants it to be."""
    began = time.monotonic()
    store.take(BEGIN + STEP * number, values(number, count))
    taken = time.monotonic() - began
    if store.due():
        store.write()
    disk.sync()
    return taken, time.monotonic() - began


def step(context, pages):
    """A point of the staircase, by `staircase.measure`, with 400 RRDs."""
    count = 400
    with machine.Disk(context.work, count * (staircase.FILE_BYTES + 8192) + (64 << 20)) as disk:
        staircase.create(disk, count)
        warm = 48 if pages < 3 else DAY + 24
        return staircase.measure(disk, {"name": "librrd", "kind": "librrd"}, count, pages, warm, 48 if pages < 3 else DAY, 1)[0]
