"""What each of the five experiments says in lab/RESULTS.md. What the reports measured is quoted, with its source; the rest is from the run."""

import pictures
import report
import r1
import r2
import r3
import r4
import r5
from pictures import number
from report import LAB, colour, compared, median, percentile, ratio, section, table, usable

PAGE_KIB = 4
# Of report R3.
INTERFACES = 22_000


def against(one, other):
    """Two figures and their ratio, as cells."""
    if one is None or other is None:
        return ["-", "-"]
    return [f"{number(one)} against {number(other)}", ratio(one, other)]


def of_r1(parts, command):
    """MRTG's modes."""
    found = usable(parts, r1.SIDES)
    native, plain, daemon, cached, pollers = (found.get(name) for name in r1.SIDES[:5])
    pictures.bars(LAB / "r1-cpu", "R1: CPU time of a pass over 3,164 targets", "seconds", [(n, p["cpu"], colour(n)) for n, p in found.items()])
    pictures.bars(LAB / "r1-writes", "R1: written to the disk by a pass", "pages of 4 KiB", [(n, p["pages_written"], colour(n)) for n, p in found.items()])
    rows = [[name, number(part["cpu"]), number(median(part["seconds"])) if 0 < len(part["seconds"]) <= part["passes"] + 1 else "-", number(part["pages_written"]),
             number(part["write_requests"]), f"{part['passes']}, {part['due']} due" if "due" in part else str(part["passes"]),
             f"{number(1e6 * part['reads']['seconds'])} us, {number(part['reads']['age'])} s, {number(part['reads']['pages_written'])} pages" if part.get("reads") else "-"]
            for name, part in found.items()]
    every = table(["side", "CPU s/pass", "s/pass", "pages written/pass", "write requests/pass", "passes",
                   f"reading {r1.READS} RRDs of which values wait: time each, age of the newest value, written by it"], rows)
    def of(one, other, key):
        return against(one and one[key], other and other[key])
    summary = compared([
        ["RRDtool in place of native logs, CPU", "35 %", *of(plain, native, "cpu"), "MRTG starts a program for each target's log and pictures; with RRDtool it draws nothing."],
        ["daemon in place of cron, CPU", "about 20 % less", *of(daemon, plain, "cpu"), "The configuration is read once."],
        ["rrdcached, disk writes", "60 % and more fewer", *of(cached, daemon, "pages_written"),
         f"Written once in {(cached or daemon or {'passes': 0})['passes']} passes; its journal is counted."],
        [f"{r1.POLLERS} pollers around one rrdcached, CPU", "recommended", *of(pollers, cached, "cpu"), "The same work by several processes, here on one machine."],
        ["Roundel against MRTG with RRDtool as a daemon, CPU", "", *of(found.get(r1.SIDES[5]), daemon, "cpu"), "Interfaces of an agent go into few requests."],
        ["Roundel against the same, pages written", "", *of(found.get(r1.SIDES[5]), daemon, "pages_written"), "Values are logged in sequence."],
        ["Roundel with two agents against Roundel, CPU", "", *of(found.get(r1.SIDES[6]), found.get(r1.SIDES[5]), "cpu"), "Agents and store together: pollers may be on other machines."],
    ])
    notes = [f"32 snmpd on this machine answer for all targets and are not counted. Daemons poll every {r1.INTERVAL} s in place of 300 s; what a pass has changed is written "
             "(syncfs) before the next, as it would be in 300 s. rrdcached writes when the passes are over."]
    return section(r1.TITLE, f"3,164 targets on 32 devices, 2 x 2.5 GHz Xeon, 4 GB; RRD mode instead of native logs: 35 % of the CPU; as a daemon about 20 % less; "
                   f"rrdcached 60 % and more fewer disk writes ({r1.SOURCE}).", [("r1-cpu", "CPU of a pass"), ("r1-writes", "pages written by a pass")],
                   [summary, every], parts, command, notes)


def of_r2(parts, command):
    """Faults against targets."""
    found = [part for part in usable(parts, parts).values() if "poll" in part]
    counts = sorted({part["rrds"] for part in found})
    by = {(part["side"], part["rrds"]): part for part in found}
    def series(value):
        return [(side, [(count, value(by[side, count])) for count in counts if (side, count) in by]) for side in r2.SIDES]
    pictures.lines(LAB / "r2-faults", "R2: pages read per update in limited memory", "targets (RRDs)", "pages of 4 KiB read from the disk per update, logarithmic (0 is not shown)",
                   series(lambda part: part["per_update"]["pages_read"]), log_y=True)
    pictures.lines(LAB / "r2-pass", "R2: time of a pass in limited memory", "targets (RRDs)", "seconds until everything is written, mean of the passes, logarithmic",
                   series(lambda part: sum(part["total"]) / len(part["total"])), log_y=True)
    most = counts[-1] if counts else 0
    graphs = [("r2-faults", "pages read against targets"), ("r2-pass", "time of a pass against targets")]
    for which, title in (("poll", "until the values are taken"), ("total", "until they are written")):
        pictures.lines(LAB / f"r2-{which}", f"R2: each pass over {most:,} RRDs, {title}", "pass", "seconds, logarithmic",
                       [(side, list(enumerate(by[side, most][which], 1))) for side in r2.SIDES if (side, most) in by], log_y=True)
        graphs.append((f"r2-{which}", f"every pass, {title}"))
    rows = [[part["side"], f"{part['rrds']:,}", number(part["per_update"]["pages_read"]), number(part["per_update"]["read_requests"]),
             number(part["per_update"]["pages_written"]), number(part["per_update"]["write_requests"]), number(sum(part["poll"]) / len(part["poll"])),
             number(sum(part["total"]) / len(part["total"])), number(part["cpu_us"])] for part in found]
    every = table(["side", "RRDs", "pages read/update", "read requests/update", "pages written/update", "write requests/update", "s/pass until taken",
                   "s/pass until written", "CPU us/update"], rows)
    def of(side, key, base):
        one, other = by.get((side, most)), by.get((base, most))
        return against(one and one["per_update"][key], other and other["per_update"][key])
    summary = compared([
        [f"advice RANDOM against readahead, pages read, {most:,} RRDs", "capacity about tripled, with buffering", *of("advice RANDOM", "pages_read", "readahead"),
         "Without readahead, memory holds the pages that are needed again."],
        ["buffering against readahead, pages written", "", *of("buffering", "pages_written", "readahead"), f"{r2.BUFFER} values are written together."],
        ["both against readahead, pages read", "capacity about tripled", *of("buffering + RANDOM", "pages_read", "readahead"), "The report's own solution."],
        ["rrdcached against readahead, pages read", "", *of("rrdcached", "pages_read", "readahead"), "librrd gives the advice by itself since the report."],
        ["Roundel's files against both, pages read", "", *of("Roundel, files", "pages_read", "buffering + RANDOM"), "The same idea within one daemon."],
        ["Roundel's stripes against both, pages written", "", *of("Roundel, stripes", "pages_written", "buffering + RANDOM"), "Nothing is read, and rows are written in sequence."],
    ])
    memory, requests = (found[0]["memory"] >> 20, found[0]["requests"]) if found else (0, 0)
    notes = [f"Program and page cache have {memory} MiB together (control group); the disk does {requests:,} reads and {requests:,} writes a second at most. RRDs are MRTG's (105 kB, 26 pages); "
             f"time is simulated, {r2.STEP} s a pass. Buffers keep {r2.BUFFER} passes. Without a journal of the file system."]
    return section(r2.TITLE, "about 320,000 RRD files, over half a million data points every five minutes; page faults by readahead; buffering and fadvise(RANDOM) about tripled the "
                   f"capacity; 8.23 pages a file in core, of 26 ({r2.SOURCE}).", graphs, [summary, every], parts, command, notes)


def of_r3(parts, command):
    """Ten sources, 4 MB."""
    found = usable(parts, r3.SIDES)
    titles = {"advice RANDOM": "librrd per update"}
    def rate(part):
        return part["interfaces"] / (sum(part["total"]) / len(part["total"]))
    pictures.bars(LAB / "r3-cpu", "R3: CPU time of an update of ten sources", "microseconds",
                  [(titles.get(name, name), part["cpu_us"], colour(name)) for name, part in found.items()])
    rows = [[titles.get(name, name), number(part["cpu_us"]), number(part["calls"]) if part["calls"] else "-", number(rate(part)),
             number(part["per_update"]["pages_written"]), *(number(part["per_update"]["write_requests"] * INTERFACES / step) for step in (30, 180))] for name, part in found.items()]
    every = table(["side", "CPU us/update", "system calls/update", "updates/s, to the page cache", "pages written/update", "write requests/s of 22,000 interfaces every 30 s", "every 180 s"], rows)
    timed = usable(parts, [f"functions, {who}" for who in ("rrdtool", "Roundel, files", "Roundel")])
    tool = timed.get("functions, rrdtool")
    functions = table(["over a day of rows", *(part["side"] for part in timed.values()), "Roundel/rrdtool, CPU"],
                      [[which, *(f"{number(part['seconds'][which])} s, {number(part['cpu'][which])} s of CPU" for part in timed.values()),
                        ratio(timed["functions, Roundel"]["cpu"][which], tool["cpu"][which]) if tool and "functions, Roundel" in timed else "-"] for which in r3.FUNCTIONS]) if timed else ""
    def of(side, base, key=lambda part: part["cpu_us"]):
        return against(key(found[side]) if side in found else None, key(found[base]) if base in found else None)
    def written(part):
        return part["per_update"]["pages_written"]
    summary = compared([
        ["open once, CPU of an update against librrd", "30,000 to 40,000 interfaces estimated, where librrd stalled at 17,000", *of("open once", "advice RANDOM"),
         "No open, no reading of the header: two writes are left."],
        ["open once, pages written", "", *of("open once", "advice RANDOM", written), "The same pages change: \"further speed needs a new data structure\"."],
        ["rrdcached, CPU", "", *of("rrdcached", "advice RANDOM"), f"{r3.BUFFER} values are written together."],
        ["Roundel, CPU", "", *of("Roundel, stripes", "advice RANDOM"), "An update changes memory and is logged."],
        ["Roundel, pages written", "", *of("Roundel, stripes", "advice RANDOM", written), "The new data structure."],
    ])
    count = next(iter(found.values()))["interfaces"] if found else 0
    notes = [f"{count} interfaces in place of 22,000 (a file has 4.2 MB; all of them would have 92 GB), enough memory, no limit of the disk. Write requests a second: those of an update as measured, times the report's rate. "
             f"System calls are counted by strace in a pass of their own. {next(iter(timed.values()))['interfaces'] if timed else 0} interfaces, {r3.DAY_ROWS} rows of ten sources each for the functions: "
             "`rrdtool -` with xport and PRINT, `roundel query` of files, and of the daemon."]
    return section(r3.TITLE, f"22,000 interfaces of 10 sources, 30 s and 180 s, 4 MB a file, 100 GB; librrd stalled at 17,000 ({r3.SOURCE}).", [("r3-cpu", "CPU of an update")],
                   [summary, every, functions], parts, command, notes)


def of_r4(parts, command):
    """collectd on a slow disk."""
    found = usable(parts, r4.SIDES)
    pictures.bars(LAB / "r4-pages", "R4: time to draw a page of 20 graphs under load, median", "seconds", [(n, percentile(p["pages"], 0.5), colour(n)) for n, p in found.items()])
    pictures.bars(LAB / "r4-writes", f"R4: write requests a second (the disk does {r4.REQUESTS})", "requests/s",
                  [(n, p["write_requests"] / p["seconds"], colour(n)) for n, p in found.items()])
    rows = []
    for name, part in found.items():
        rows.append([name, number(part["values"] / part["seconds"]), number(part["write_requests"] / part["seconds"]), number(part["read_requests"] / part["seconds"]),
                     number(part["waiting_pages"] * PAGE_KIB / 1024), number(part["lag"]["median"]), number(part["lag"]["most"]),
                     " / ".join(number(percentile(part["pages"], share)) for share in (0.5, 0.95, 1)), str(part["refused"]), number(part["cpu"] / part["seconds"]), number(part["memory"] / 1e6)])
    every = table(["side", "values/s sent", "write requests/s", "read requests/s", "MiB changed and not written at the end", "age of an RRD's last value, median s", "most s",
                   "20 graphs: median / 95 % / slowest s", "graphs refused (RRD locked)", "cores", "memory, MB"], rows)
    plain, ours = found.get(r4.SIDES[0]), found.get(r4.SIDES[3])
    cached = found.get(r4.SIDES[1])
    def requests(part):
        return part and part["write_requests"] / part["seconds"]
    def pages(part):
        return part and percentile(part["pages"], 0.5)
    summary = compared([
        ["write requests a second, collectd + rrdtool", "about 3,000 needed, 600 to 800 there were", number(requests(plain)) if plain else "-", "-",
         "The disk is busy all the time, and the RRDs fall ever further back (their age)."],
        ["the same with rrdcached", "", *against(requests(cached), requests(plain)), "Fewer writes, but as random; what a page shows is flushed first."],
        ["Roundel, with the backup", "", *against(requests(ours), requests(plain)), "Written in sequence, durable within a second, sent to S3 meanwhile."],
        ["s for a page of 20 graphs, Roundel against collectd + rrdtool", "unusable while the disks rattle", *against(pages(ours), pages(plain)),
         "What changes is in memory, and nothing waits for the disk."],
    ])
    sent = number(ours["s3_bytes"] / ours["values"]) if ours else "no"
    swap = any(part.get("swap") for part in found.values())
    notes = [f"290 hosts send {r4.size(False)['rrds']:,} values every 10 s by collectd's protocol. The disk does {r4.REQUESTS} reads and {r4.REQUESTS} writes a second (a real one: both together, so the peers are flattered), "
             f"collector and page cache have {r4.MEMORY >> 20} MiB. RRDs have 148 kB (in the report 12.7 MB: 261 GB in all). rrdcached writes after {r4.WRITE_SECONDS} to {2 * r4.WRITE_SECONDS} s. "
             f"Files on tmpfs: {'this machine has swap, but it is not forced to use it' if swap else 'this machine has no swap, so all of it stays in memory, and a crash loses it'}. "
             f"Roundel's backup sent {sent} bytes a value to a local S3 server. \"Age\" of the peers' files is as a program sees it that does not ask rrdcached. Graphs: one `rrdtool -` for the peers, HTTP for Roundel."]
    return section(r4.TITLE, f"20,500 RRDs every 10 s from 290 hosts, 261 GB, 8.7 GB of it active; two disks of 600 to 800 random writes a second against about 3,000 needed; graphs unusable ({r4.SOURCE}).",
                   [("r4-pages", "time of a page of graphs"), ("r4-writes", "write requests a second")], [summary, every], parts, command, notes)


def of_r5(parts, command):
    """gmetad and stripes."""
    found = usable(parts, r5.SIDES)
    def requests(part):
        return part and part["write_requests"] / part["seconds"]
    pictures.bars(LAB / "r5-requests", "R5: write requests a second, 26,000 RRDs every 10 s", "requests/s", [(n, requests(p), colour(n)) for n, p in found.items()])
    rows = [[name, number(requests(part)), number(part["pages_written"] * PAGE_KIB / 1024 / part["seconds"]), number(part["read_requests"] / part["seconds"]),
             f"{part['rounds']} of {part['seconds'] / r5.STEP:.0f}", number(part["cpu"] / part["seconds"]), number(part["memory"] / 1e6)] for name, part in found.items()]
    every = table(["side", "write requests/s", "MiB written/s", "read requests/s", "rounds", "cores", "memory, MB"], rows)
    files, cached, stripes, ours, own = (found.get(name) for name in r5.SIDES)
    def cell(part):
        return number(requests(part)) if part else "-"
    summary = compared([
        ["files, requests a second", "over 5,000, through rrdcached", cell(files), ratio(requests(files), 5000) + " the report's", "Two or three pages of each RRD, all over the disk."],
        ["rrdcached", "over 5,000", cell(cached), ratio(requests(cached), requests(files)), "Several values of an RRD together, still a request or two for each."],
        ["stripes of 32 bytes", "615", cell(stripes), ratio(requests(stripes), requests(files)), "A block holds the same time of 128 RRDs; nothing but rows is kept, so that a crash costs what is open."],
        ["gmetad + Roundel", "", cell(ours), ratio(requests(ours), requests(files)), "gmetad finds placeholders, as the report's dummy files, and believes that its RRDs exist."],
        ["Roundel in gmetad's place", "", cell(own), ratio(requests(own), requests(files)), "The same without gmetad."],
    ])
    size = next(iter(found.values()))["file_bytes"] if found else 0
    notes = [f"Files have {size / 1000:.0f} kB in place of 2 MB: what a round touches is the same, a ring of fewer rows is only shorter. A gmond of 520 hosts with 50 metrics each is polled every 10 s. What has changed is written every "
             f"{r5.SYNC_SECONDS} s (syncfs), as ext3 did in 2008; memory is enough. rrdcached writes after {r5.WRITE_SECONDS} to {2 * r5.WRITE_SECONDS} s. The stripes are `lab/stripes.c`, fed as gmetad feeds RRDtool."]
    return section(r5.TITLE, f"about 26,000 RRDs of 2 MB every 10 s by gmetad through rrdcached: over 5,000 I/O a second; one stripe file of 32-byte stripes: 615 ({r5.SOURCE}).",
                   [("r5-requests", "write requests a second")], [summary, every], parts, command, notes)


SECTIONS = (("r1", of_r1), ("r2", of_r2), ("r3", of_r3), ("r4", of_r4), ("r5", of_r5))
