"""R5: Ganglia's RRDs every 10 s: disk requests a second by files, rrdcached, stripes of 32 bytes, and Roundel."""

import socket
import threading
import time
from pathlib import Path

import machine
import sides

STEP = 10
METRICS = 50
# PDPs and bytes' share of each archive: ten seconds, a minute, ten minutes.
ARCHIVES = ((1, 0.6), (6, 0.25), (60, 0.15))
# ext3, on which the report ran, wrote what was changed every 5 s; the lab does that with syncfs, for all sides.
SYNC_SECONDS = 5
WRITE_SECONDS = 60
SIDES = ("gmetad, files", "gmetad + rrdcached", "stripes of 32 bytes", "gmetad + Roundel", "Roundel in gmetad's place")
TITLE = "R5: gmetad, 26,000 RRDs every 10 s, disk requests a second"
SOURCE = "D. Pocock, RRD striping, 2008"


def size(full):
    return {"rrds": 26000, "seconds": 1200 if full else 60, "file_bytes": 400_000 if full else 40_000}


def plan(full):
    """What the experiment takes."""
    given = size(full)
    return {"minutes": len(SIDES) * (given["seconds"] + (240 if full else 60)) / 60,
            "disk_mib": 26500 * (given["file_bytes"] + 8192) * 1.1 / (1 << 20) + 700, "memory_mib": 1500, "programs": ["gmetad"], "limited": False}


def parts(full):
    return [(side, lambda context, side=side: measure(context, side, **size(full))) for side in SIDES]


def rows(file_bytes):
    """The archives as (PDPs, rows), for a file of so many bytes."""
    return [(pdps, int(file_bytes * share / 8)) for pdps, share in ARCHIVES]


class Gmond(threading.Thread):
    """Answers like a gmond with 50 metrics of each of its hosts, which change all the time."""

    def __init__(self, rrds):
        super().__init__(daemon=True)
        self.hosts, self.polls = rrds // METRICS, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.sendall(self.xml().encode())
                    self.polls += 1
                except OSError:
                    pass

    def xml(self):
        now = int(time.time())
        made = ['<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n<GANGLIA_XML VERSION="3.7.2" SOURCE="gmond">\n'
                f'<CLUSTER NAME="lab" LOCALTIME="{now}" OWNER="o" LATLONG="" URL="">\n']
        for host in range(self.hosts):
            made.append(f'<HOST NAME="node{host}" IP="10.0.{host // 250}.{host % 250}" TAGS="" REPORTED="{now}" TN="1" TMAX="20" DMAX="0" '
                        'LOCATION="" GMOND_STARTED="1">\n')
            for metric in range(METRICS):
                value = ((host * 31 + metric * 17 + now * 7) % 1000) / 10
                made.append(f'<METRIC NAME="m{metric}" VAL="{value}" TYPE="float" UNITS="u" TN="1" TMAX="60" DMAX="0" SLOPE="both"/>\n')
            made.append("</HOST>\n")
        return "".join([*made, "</CLUSTER>\n</GANGLIA_XML>\n"])

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def gmetad(place, data, gmond, archives, cached=None):
    """Debian's gmetad, which writes RRDs by itself or through rrdcached's protocol."""
    config = Path(place) / "gmetad.conf"
    rras = " ".join(f'"RRA:AVERAGE:0.5:{pdps}:{count}"' for pdps, count in archives)
    config.write_text(f'data_source "lab" {STEP} 127.0.0.1:{gmond.port}\nsetuid off\nrrd_rootdir "{data}"\nxml_port {sides.free_port()}\n'
                      f'interactive_port {sides.free_port()}\ncase_sensitive_hostnames 0\nRRAs {rras}\n'
                      + (f"rrdcached_address 127.0.0.1:{cached}\n" if cached else ""))
    return sides.start(["gmetad", "-d", "1", "-c", config], log=Path(place) / "gmetad.log")


class Feeder(threading.Thread):
    """Feeds the program of stripes as gmetad feeds RRDtool: every 10 s, one RRD after the other."""

    def __init__(self, program, path, rrds, archives):
        super().__init__(daemon=True)
        self.rrds, self.polls, self.stopping = rrds, 0, threading.Event()
        self.tool = sides.Tool(".", program=[program, path, rrds, *(f"{pdps}:{count}" for pdps, count in archives)])
        self.start()

    def run(self):
        while not self.stopping.wait(STEP - time.time() % STEP):
            when = int(time.time()) // STEP
            self.tool.ask_lines([f"{index} {when} {(index * 31 + when * 7) % 1000 / 10}" for index in range(self.rrds)])
            self.polls += 1

    def end(self):
        self.stopping.set()
        self.tool.process.kill()


def begin(context, side, disk, stack, rrds, archives):
    """Starts a side; returns its processes, what counts its polls, and how many RRDs it has (a function)."""
    place, data = context.folder(stack), disk.mount / "rrds"
    data.mkdir()
    if side.startswith("stripes"):
        program = sides.compiled(place, "stripes")
        feeder = Feeder(program, disk.mount / "stripes", rrds, archives)
        stack.callback(feeder.end)
        return [feeder.tool.process], feeder, lambda: rrds
    gmond = Gmond(rrds)
    stack.callback(gmond.end)
    def files():
        return sum(1 for _ in data.glob("lab/node*/*.rrd"))
    if side == "gmetad, files":
        process = gmetad(place, data, gmond, archives)
        stack.callback(process.kill)
        return [process], gmond, files
    port, http = sides.free_port(), sides.free_port()
    if side == "gmetad + rrdcached":
        daemon = sides.rrdcached(data, None, WRITE_SECONDS, disk.mount / "journal", port, 4, ["-z", WRITE_SECONDS])
    elif side == "gmetad + Roundel":
        daemon = sides.roundel(context.roundel, data, disk.mount / "store", tcp=port, http=http)
        # As in the report, gmetad finds files in their places and takes them for its RRDs.
        words = " ".join(f"RRA:AVERAGE:0.5:{pdps}:{count}" for pdps, count in archives)
        daemon.lines.pipelined([f"CREATE lab/node{index // METRICS}/m{index % METRICS}.rrd -b {int(time.time()) - STEP} -s {STEP} "
                                f"DS:sum:GAUGE:{8 * STEP}:U:U {words}" for index in range(rrds)])
    else:
        rras = ", ".join(f'"RRA:AVERAGE:0.5:{pdps}:{count}"' for pdps, count in archives)
        sections = f'[[gmond]]\nname = "lab"\naddresses = ["127.0.0.1:{gmond.port}"]\nstep = "{STEP}s"\n[gmetad]\nrras = [{rras}]\n'
        daemon = sides.roundel(context.roundel, data, disk.mount / "store", http=http, sections=sections)
    stack.callback(daemon.end)
    if side.startswith("Roundel"):
        return [daemon.process], gmond, lambda: sides.metric(http, "roundel_store_rrds") or 0
    process = gmetad(place, data, gmond, archives, port)
    stack.callback(process.kill)
    count = files if "rrdcached" in side else lambda: sides.metric(http, "roundel_store_rrds") or 0
    return [process, daemon.process], gmond, count


def measure(context, side, rrds, seconds, file_bytes):
    """Runs one side and returns what was counted."""
    with context.stack() as stack:
        archives = rows(file_bytes)
        room = int(rrds * 1.02 * (file_bytes + 8192) * 1.1) + (600 << 20)
        disk = stack.enter_context(machine.Disk(context.work, room, journal=True, inodes=3 * rrds))
        processes, source, count = begin(context, side, disk, stack, rrds, archives)
        sides.wait_until(f"{side} has {rrds} RRDs", lambda: count() >= rrds, seconds=900)
        polls = source.polls
        sides.wait_until(f"{side} polls again", lambda: source.polls >= polls + 2, seconds=120)
        disk.sync()
        def cpu():
            return sum(machine.cpu_seconds(process.pid) for process in processes)
        before, busy, polls, began = disk.counters(), cpu(), source.polls, time.monotonic()
        while time.monotonic() < began + seconds:
            time.sleep(SYNC_SECONDS)
            disk.sync()
        took = time.monotonic() - began
        counted = machine.difference(disk.counters(), before)
        return {"side": side, "rrds": rrds, "file_bytes": file_bytes, "seconds": round(took, 1), "rounds": source.polls - polls,
                "cpu": round(cpu() - busy, 2), "memory": sum(machine.memory_bytes(process.pid) for process in processes), **counted}
