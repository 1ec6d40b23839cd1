"""R1: MRTG in all its modes, and Roundel reading the same mrtg.cfg: CPU, disk writes and time of a pass over 3,164 targets of 32 agents."""

import resource
import socket
import statistics
import subprocess
import threading
import time
from pathlib import Path

import machine
import sides

AGENTS, TARGETS, INTERFACES, FIRST_INDEX = 32, 3164, 99, 1001
# Seconds between passes of daemons: MRTG takes less than that for one, as it does of its usual 300.
INTERVAL = 20
POLLERS = 4
READS = 200
# A program that has rested for so long has ended its pass.
REST_SECONDS = 1.5
SIDES = ("MRTG, native logs, from cron", "MRTG + RRDtool, from cron", "MRTG + RRDtool, daemon", "MRTG daemon + rrdcached",
         f"{POLLERS} MRTG daemons + one rrdcached", "Roundel, the same mrtg.cfg", "Roundel + 2 agents")
TITLE = "R1: MRTG, 3,164 targets on 32 agents"
SOURCE = "S. Shipway, Auckland, about 2010"


def size(full):
    return {"passes": 30 if full else 3}


def plan(full):
    """What the experiment takes."""
    seconds = size(full)["passes"] * INTERVAL + 50
    return {"minutes": len(SIDES) * seconds / 60, "disk_mib": 1400, "memory_mib": 1500, "programs": ["mrtg", "snmpd"], "limited": False}


def parts(full):
    return [(side, lambda context, side=side: measure(context, side, **size(full))) for side in SIDES]


def agent_config(port, agent):
    """snmpd.conf with 99 interfaces, whose counters stand still, beside those of this machine."""
    lines = [f"agentaddress udp:127.0.0.1:{port}", "rocommunity public 127.0.0.1"]
    for interface in range(INTERFACES):
        index, octets = FIRST_INDEX + interface, (agent * INTERFACES + interface) * 1_000_003
        for table, column, value in (("2.2.1", 1, f"integer {index}"), ("2.2.1", 2, f'octet_str "port {interface}"'),
                                     ("31.1.1.1", 1, f'octet_str "p{interface}"'), ("31.1.1.1", 6, f"counter {octets}"),
                                     ("31.1.1.1", 10, f"counter {octets // 3}")):
            lines.append(f"override .1.3.6.1.2.1.{table}.{column}.{index} {value}")
    return "\n".join(lines) + "\n"


def farm(folder, stack):
    """Starts 32 snmpd, which end with `stack`; returns their ports."""
    ports = []
    for agent in range(AGENTS):
        place, port = Path(folder) / f"agent{agent}", sides.free_port(socket.SOCK_DGRAM)
        place.mkdir()
        (place / "snmpd.conf").write_text(agent_config(port, agent))
        process = sides.start(["snmpd", "-f", "-r", "-Lo", "-C", "-c", place / "snmpd.conf", "-p", place / "pid"], log=place / "log",
                              env={"SNMP_PERSISTENT_DIR": str(place), "MIBS": ""})
        stack.callback(process.kill)
        ports.append(port)
    time.sleep(2)
    return ports


def config(path, ports, head, targets=range(TARGETS)):
    """Writes an mrtg.cfg of these targets."""
    # As many rows as with five minutes between passes: MRTG makes more of them if there is less time between.
    lines = [head, "RRDRowCount[_]: 800", "MaxBytes[_]: 1250000000", "Title[_]: t", ""]
    for target in targets:
        agent, interface = target % AGENTS, target // AGENTS
        lines.append(f"Target[t{target}]: {FIRST_INDEX + interface}:public@127.0.0.1:{ports[agent]}::::2")
    Path(path).write_text("\n".join(lines) + "\n")
    return path


class Watch(threading.Thread):
    """Looks at the CPU time of processes, to tell their passes from their rest, and at the last reading of an RRD (`newest`), to count passes."""

    def __init__(self, processes, newest):
        super().__init__(daemon=True)
        self.processes, self.newest, self.stopping, self.seen = processes, newest, threading.Event(), []
        self.reading, self.changes = newest(), []
        self.start()

    def cpu(self):
        return sum(machine.cpu_seconds(process.pid) for process in self.processes)

    def run(self):
        while not self.stopping.wait(0.1):
            self.seen.append((time.monotonic(), self.cpu()))
            reading = self.newest()
            if reading != self.reading:
                self.reading = reading
                self.changes.append(time.monotonic())

    def passes(self):
        """Seconds of each pass, and how many there were. Seconds are stretches of work between rests; a pass that had begun already, or has not ended,
        does not count there, and one that follows the other without a rest neither."""
        self.stopping.set()
        self.join()
        if not self.changes:
            raise SystemExit("lab: it has not made a single pass")
        return stretches(self.seen, REST_SECONDS, self.changes), len(self.changes)


def stretches(seen, rest, marks=None):
    """Of pairs (time, CPU time so far): the lengths of the stretches in which CPU time grew, between rests of at least `rest` seconds; with
    `marks`, of those only in which one of these times lies, or soon after which."""
    lengths, begin, last = [], None, None
    quiet_since = None
    for (before, used), (now, used_now) in zip(seen, seen[1:]):
        if used_now > used + 0.005:
            if begin is None and quiet_since is not None and before - quiet_since >= rest:
                begin = before
            last, quiet_since = now, None
        else:
            quiet_since = quiet_since if quiet_since is not None else before
            if begin is not None and now - quiet_since >= rest:
                if marks is None or any(begin <= mark <= now for mark in marks):
                    lengths.append(last - begin)
                begin = None
    return lengths


def last_reading(store, data):
    """A function that says when the first target was read last: by a connection of its own, or the header of the file."""
    if store:
        lines = sides.Lines(store.address)
        return lambda: int(lines.command("LAST t0.rrd")[0].split()[1])
    # After the static header, the definitions of two sources and of eight archives: docs/format/rrd.md.
    at = 128 + 2 * 120 + 8 * 120
    def read():
        try:
            with open(data / "t0.rrd", "rb") as file:
                file.seek(at)
                return int.from_bytes(file.read(8), "little")
        except OSError:
            return 0
    return read


def mrtg(path, log):
    return sides.start(["mrtg", path], log=log, env={"LANG": "C"})


def from_cron(place, data, ports, disk, head, passes):
    """Runs MRTG once a pass, as cron does."""
    path, log = config(place / "mrtg.cfg", ports, f"WorkDir: {data}\nInterval: 5\n{head}"), place / "mrtg.log"
    seconds, busy, before = [], 0.0, None
    for number in range(passes + 1):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        process = mrtg(path, log)
        if process.wait():
            raise SystemExit(f"lab: mrtg: {log.read_text()[-500:]}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The first one makes the files.
        if number:
            seconds.append(time.monotonic() - began)
            busy += now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        disk.sync()
        before = before or disk.counters()
        # RRDtool refuses a second reading in the same second.
        time.sleep(1.1)
    return {"seconds": seconds, "cpu": busy / passes, **per_pass(machine.difference(disk.counters(), before), passes)}


def per_pass(counted, passes):
    return {"pages_written": counted["pages_written"] / passes, "write_requests": counted["write_requests"] / passes, "passes": passes}


def daemons(side, context, place, data, ports, disk, stack):
    """Starts the daemons of a side; returns those that count, and the rrdcached or Roundel, if there is one."""
    head = f"WorkDir: {data}\nLogFormat: rrdtool\nInterval: 0:{INTERVAL}\n"
    log = place / "log"
    if side.startswith("Roundel"):
        return roundel(side, context, place, data, ports, disk, stack)
    head += "RunAsDaemon: Yes\nNoDetach: Yes\n"
    store = None
    if "rrdcached" in side:
        # It writes when the passes are over: with passes 300 s apart that is -w of half an hour.
        store = sides.rrdcached(data, journal=disk.mount / "journal")
        stack.callback(store.end)
        head += f"RRDCached: {store.address}\n"
    count = POLLERS if side.startswith(str(POLLERS)) else 1
    found = [mrtg(config(place / f"{number}.cfg", ports, head, range(number, TARGETS, count)), log) for number in range(count)]
    for process in found:
        stack.callback(process.kill)
    return found + ([store.process] if store else []), store


def roundel(side, context, place, data, ports, disk, stack):
    head = f"WorkDir: {data}\nLogFormat: rrdtool\nInterval: 0:{INTERVAL}"
    if "agents" not in side:
        path = config(place / "mrtg.cfg", ports, head)
        store = sides.roundel(context.roundel, data, disk.mount / "store", sections=f'[[mrtg]]\nconfig = "{path}"\n')
        stack.callback(store.end)
        return [store.process], store
    port, found = sides.free_port(), []
    store = sides.roundel(context.roundel, data, disk.mount / "store", sections=f'[agents]\nlisten = ["127.0.0.1:{port}"]\n')
    stack.callback(store.end)
    for number in range(2):
        path = config(place / f"{number}.cfg", ports, head, range(number, TARGETS, 2))
        agent = place / f"agent-{number}.toml"
        agent.write_text(f'base = "{data}"\n[log]\nlevel = "warn"\n[agent]\nname = "lab-{number}"\nstore = "127.0.0.1:{port}"\n'
                         f'spool = "{disk.mount}/spool-{number}"\n[[mrtg]]\nconfig = "{path}"\n')
        found.append(sides.start([context.roundel, "agent", "--config", agent], log=place / f"agent-{number}.log"))
        stack.callback(found[-1].kill)
    return [*found, store.process], store


def measure(context, side, passes):
    """Runs one side and returns what was counted per pass."""
    with context.stack() as stack:
        place = Path(context.folder(stack))
        disk = stack.enter_context(machine.Disk(context.work, 1100 << 20, journal=True, inodes=60000))
        data = disk.mount / "rrds"
        data.mkdir()
        ports = farm(place, stack)
        if "cron" in side:
            head = "LogFormat: rrdtool\n" if "RRDtool" in side else ""
            return {"side": side, **from_cron(place, data, ports, disk, head, passes if head else max(1, passes // 3))}
        processes, store = daemons(side, context, place, data, ports, disk, stack)
        # The first two passes make the RRDs, and learn.
        time.sleep(2 * INTERVAL + INTERVAL / 2)
        if store:
            store.lines.command("FLUSHALL")
        disk.sync()
        before, watch = disk.counters(), Watch(processes, last_reading(store, data))
        used = watch.cpu()
        for _ in range(passes):
            time.sleep(INTERVAL)
            disk.sync()
        busy, reads = watch.cpu() - used, None
        seconds, made_passes = watch.passes()
        if store:
            reads = front_end(store, data, disk, side)
            store.lines.command("FLUSHALL")
            time.sleep(2)
        disk.sync()
        return {"side": side, "seconds": seconds, "cpu": busy / made_passes, **per_pass(machine.difference(disk.counters(), before), made_passes),
                "due": passes,
                "reads": reads, "rrds": made(store, data)}


def made(store, data):
    """How many of the targets have RRDs."""
    return len(list(data.glob("t*.rrd")))


def front_end(store, data, disk, side):
    """How long what a front end asks takes while the newest values are not in files yet: FETCH of the last hour, and what it writes."""
    disk.sync()
    before, seconds, ages = disk.counters(), [], []
    for number in range(0, TARGETS, TARGETS // READS):
        began = time.monotonic()
        _, lines = store.lines.command(f"FETCH t{number}.rrd AVERAGE {int(time.time()) - 600}")
        seconds.append(time.monotonic() - began)
        last = int(store.lines.command(f"LAST t{number}.rrd")[0].split()[1])
        ages.append(time.time() - last)
    disk.sync()
    written = machine.difference(disk.counters(), before)["pages_written"]
    return {"count": len(seconds), "seconds": statistics.median(seconds), "age": round(statistics.median(ages), 1), "pages_written": written}
