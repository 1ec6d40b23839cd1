"""R4: collectd's RRDs every 10 s on a disk of 700 random writes a second, while somebody looks at graphs."""

import random
import socket
import statistics
import struct
import subprocess
import threading
import time
from pathlib import Path

import machine
import sides

STEP = 10
HOSTS = 290
REQUESTS = 700
MEMORY = 1 << 30
GRAPHS = 20
PACKET_BYTES = 1400
# rrdcached's -w and -z: minutes, so that a run of minutes sees it at work.
WRITE_SECONDS = 60
SIDES = ("collectd + rrdtool", "collectd + rrdcached", "collectd + rrdtool on tmpfs", "Roundel + backup to S3")
TITLE = "R4: collectd, 20,500 RRDs every 10 s, a disk of 700 random writes/s"
SOURCE = "T. von Eicken, RightScale, 2008"


def size(full):
    return {"rrds": 20500, "seconds": 3600 if full else 80}


def plan(full):
    """What the experiment takes."""
    seconds = size(full)["seconds"]
    return {"minutes": len(SIDES) * (seconds + 75) / 60, "disk_mib": 4200, "memory_mib": 4500, "programs": ["collectd"], "limited": True}


def parts(full):
    return [(side, lambda context, side=side: measure(context, side, **size(full))) for side in SIDES]


def text_part(kind, text):
    return struct.pack(">HH", kind, 5 + len(text)) + text.encode() + b"\0"


def packets(host, count, when, salt):
    """collectd's packets with a gauge for each of `count` RRDs of a host."""
    head = struct.pack(">HHQHHQ", 1, 12, when, 7, 12, STEP) + text_part(0, f"host{host}") + text_part(2, "lab") + text_part(4, "gauge")
    made = [head]
    for number in range(count):
        value = ((host * 71 + number * 13 + salt * 7) % 8000) / 8
        part = text_part(5, str(number)) + struct.pack(">HHHB", 6, 15, 1, 1) + struct.pack("<d", value)
        if len(made[-1]) + len(part) > PACKET_BYTES:
            made.append(head)
        made[-1] += part
    return made


class Senders(threading.Thread):
    """290 hosts, each of which sends all its values every 10 s, one after the other."""

    def __init__(self, port, rrds):
        super().__init__(daemon=True)
        self.counts = [rrds // HOSTS + (host < rrds % HOSTS) for host in range(HOSTS)]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.port, self.stopping, self.sent, self.late = port, threading.Event(), 0, 0.0
        self.rounds = 0

    def run(self):
        begin = time.time()
        while not self.stopping.is_set():
            for host, count in enumerate(self.counts):
                due = begin + STEP * (self.rounds + host / HOSTS)
                if self.stopping.wait(max(0, due - time.time())):
                    return
                self.late = max(self.late, time.time() - due)
                for packet in packets(host, count, int(time.time()), self.rounds):
                    self.socket.sendto(packet, ("127.0.0.1", self.port))
                self.sent += count
            self.rounds += 1


def collectd(place, data, port, cached, group):
    """Debian's collectd, which receives packets and writes RRDs by itself or through rrdcached."""
    writer = (f'LoadPlugin rrdcached\n<Plugin rrdcached>\n DaemonAddress "{cached}"\n DataDir "{data}"\n CreateFiles true\n</Plugin>\n' if cached
              else f'LoadPlugin rrdtool\n<Plugin rrdtool>\n DataDir "{data}"\n CacheTimeout 0\n</Plugin>\n')
    config = Path(place) / "collectd.conf"
    config.write_text(f'Hostname "lab"\nBaseDir "{place}"\nPIDFile "{place}/pid"\nTypesDB "/usr/share/collectd/types.db"\n'
                      f'LoadPlugin network\n<Plugin network>\n Listen "127.0.0.1" "{port}"\n</Plugin>\n{writer}')
    return sides.start(["collectd", "-f", "-C", config], group, Path(place) / "collectd.log")


def arguments(name, source):
    """A graph of the last hour, as arguments of rrdtool graph."""
    return ["--start", "-3600", "--end", "now", "--width", "400", "--height", "100", f"DEF:a={source}:value:AVERAGE",
            f"DEF:b={source}:value:MAX", "AREA:a#8888ff", f"LINE1:b#cc0000:{name}"]


class Side:
    """One of `SIDES` on a disk, in a group."""

    def __init__(self, context, side, disk, group, stack):
        self.name, self.disk, self.group = side, disk, group
        self.place, self.port = Path(context.folder(stack)), sides.free_port(socket.SOCK_DGRAM)
        self.data = disk.mount / "rrd"
        self.data.mkdir()
        self.daemon = self.collectd = self.tool = self.http = self.s3 = None
        if side.startswith("Roundel"):
            self.s3 = sides.S3(context.folder(stack) + "/s3")
            stack.callback(self.s3.end)
            self.http = sides.free_port()
            sections = f'[collectd]\nlisten = ["udp://127.0.0.1:{self.port}"]\n{self.s3.section()}'
            self.daemon = sides.roundel(context.roundel, self.data, disk.mount / "store", group=group, http=self.http, sections=sections)
            stack.callback(self.daemon.end)
            return
        if side.endswith("tmpfs"):
            machine.run("mount", "-t", "tmpfs", "-o", "size=4200m", "tmpfs", str(self.data))
            stack.callback(subprocess.run, ["umount", "-l", str(self.data)])
        cached = None
        if "rrdcached" in side:
            self.daemon = sides.rrdcached(self.data, group, WRITE_SECONDS, disk.mount / "journal", threads=4, words=["-z", str(WRITE_SECONDS)])
            stack.callback(self.daemon.end)
            cached = self.daemon.address
        # What lies in tmpfs is memory of whoever wrote it first: it must not be the group's, which has less.
        own = None if side.endswith("tmpfs") else group
        self.collectd = collectd(self.place, self.data, self.port, cached, own)
        stack.callback(self.collectd.kill)
        self.tool = sides.Tool(self.data, own, env={"RRDCACHED_ADDRESS": cached} if cached else None)
        # That is what librrd says while collectd updates the same RRD.
        self.tool.tolerated = b"could not lock RRD"
        stack.callback(self.tool.process.kill)

    def pids(self):
        return [process.pid for process in (self.collectd, self.daemon and self.daemon.process) if process]

    def made(self, rrds):
        """Whether all RRDs are there."""
        if self.http:
            return (sides.metric(self.http, "roundel_store_rrds") or 0) >= rrds
        return sum(1 for _ in self.data.glob("*/lab/*.rrd")) >= rrds

    def page(self, host, count):
        """Seconds to draw a page of 20 graphs of a host."""
        numbers = random.sample(range(count), min(GRAPHS, count))
        began = time.monotonic()
        for number in numbers:
            source = f"host{host}/lab/gauge-{number}.rrd"
            words = arguments(f"gauge-{number}", source)
            if self.http:
                sides.get(self.http, "/graph", [("arg", word) for word in words])
            else:
                self.tool.ask([f"graph {self.place}/page.png " + " ".join(words)])
        return time.monotonic() - began

    def lag(self, counts):
        """How old the newest stored value is of some RRDs, in seconds."""
        ages, chosen = [], random.Random(1).sample(range(HOSTS), 50)
        for host in chosen:
            source = f"host{host}/lab/gauge-{random.randrange(counts[host])}.rrd"
            if self.http:
                last = next(int(line.split()[2]) for line in self.daemon.lines.command(f"INFO {source}")[1] if line.startswith("last_update "))
            else:
                last = int(machine.run("rrdtool", "last", str(self.data / source), env={"PATH": "/usr/bin:/bin"}))
            ages.append(time.time() - last)
        return ages


def measure(context, side, rrds, seconds):
    """Runs one side and returns what was counted."""
    with context.stack() as stack:
        disk = stack.enter_context(machine.Disk(context.work, (rrds * 160 << 10) + (800 << 20), journal=True, inodes=3 * rrds))
        group = stack.enter_context(machine.Group(MEMORY))
        one = Side(context, side, disk, group, stack)
        sender = Senders(one.port, rrds)
        stack.callback(sender.stopping.set)
        sender.start()
        sides.wait_until(f"{side} has made {rrds} RRDs", lambda: one.made(rrds), seconds=900)
        # A round later all have had a second value, and what the creation has changed is written.
        time.sleep(STEP)
        disk.sync()
        disk.limit(REQUESTS, group)
        # So that nothing waits for the limit while the sides end.
        stack.callback(disk.unlimit)
        return {"side": side, "rrds": rrds, **watch(one, sender, seconds)}


def watch(one, sender, seconds):
    """Draws pages for so long, while values arrive, and counts."""
    def cpu():
        return sum(machine.cpu_seconds(pid) for pid in one.pids())
    before, busy, sent, backup = one.disk.counters(), cpu(), sender.sent, sent_to_s3(one)
    began, pages = time.monotonic(), []
    picked = random.Random(4)
    while time.monotonic() < began + seconds:
        host = picked.randrange(HOSTS)
        pages.append(round(one.page(host, sender.counts[host]), 4))
        time.sleep(1)
    took = time.monotonic() - began
    counted = machine.difference(one.disk.counters(), before)
    result = {
        "seconds": round(took, 1), "values": sender.sent - sent, "cpu": round(cpu() - busy, 2),
        "write_requests": counted["write_requests"], "pages_written": counted["pages_written"], "read_requests": counted["read_requests"],
        "pages": pages, "refused": one.tool.refused if one.tool else 0, "memory": sum(machine.memory_bytes(pid) for pid in one.pids()), "late": round(sender.late, 2),
        "s3_bytes": sent_to_s3(one) - backup, "swap": len(Path("/proc/swaps").read_text().splitlines()) > 1,
    }
    lag = one.lag(sender.counts)
    # What is changed in memory and not on disk when the time is over: written now, with the limit off.
    one.disk.unlimit()
    waiting = one.disk.counters()
    one.disk.sync()
    result["waiting_pages"] = machine.difference(one.disk.counters(), waiting)["pages_written"]
    return {**result, "lag": {"median": round(statistics.median(lag), 1), "most": round(max(lag), 1)}}


def sent_to_s3(one):
    return (sides.metric(one.http, "roundel_backup_sent_bytes_total") or 0) if one.http else 0
