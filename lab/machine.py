"""What the lab's experiments use of a machine: a loop device with a file system of its own, whose requests a second can be limited, a
control group with limited memory, and counters of both and of processes.

Loop devices and groups need root. Everything that is made here is removed again when the `with` ends, also after Ctrl-C. What an
experiment that was killed has left (a mount below DIR, a group named roundel-lab-*) the next one removes first.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PAGE = 4096
# The exit status of a run that SIGTERM ends.
ENDED_BY_SIGNAL = 143
# Not empty once SIGTERM has come, whatever exceptions its clean-up makes of it.
ENDING = []
GROUP_PREFIX = "roundel-lab-"
# Fields of memory.stat that both versions of control groups have.
STAT_FIELDS = ("pgmajfault", "pgfault", "workingset_refault_file")


def run(*words, **more):
    """Runs a program and returns what it printed; its failure ends the experiment with its own words."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"lab: {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def missing(programs=(), limited=False):
    """What this machine lacks for an experiment with these programs, as texts; empty if nothing. `limited`: it limits a disk's requests."""
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root, for a loop device and a control group: run it with sudo")
    if not Path("/dev/loop-control").exists():
        lacks.append("loop devices: modprobe loop")
    for program in ("losetup", "mkfs.ext4", "mount", "rrdtool", "rrdcached", "gcc", *programs):
        if which(program) is None:
            lacks.append(f"the program {program}: make peers")
    if group_root() is None:
        lacks.append("the memory controller of control groups, version 1 or 2")
    if limited and io_limits() is None:
        lacks.append("limits of a disk's requests: the controller blkio of version 1, or io of version 2")
    return lacks


def which(program):
    """Where a program is, or None; daemons are where a user's PATH may not lead."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def io_limits():
    """How requests can be limited: ("v1", directory), ("v2", directory), or None."""
    old = Path("/sys/fs/cgroup/blkio")
    if (old / "blkio.throttle.write_iops_device").exists():
        return "v1", old
    root = group_root()
    if root and root[1] == 2 and "io" in (root[0] / "cgroup.controllers").read_text().split():
        return "v2", root[0]
    return None


def group_root():
    """Where control groups with the memory controller are: (directory, version), or None."""
    for path in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        try:
            if "memory" in (path / "cgroup.controllers").read_text().split():
                return path, 2
        except OSError:
            pass
    if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        return Path("/sys/fs/cgroup/memory"), 1
    return None


class Group:
    """A control group whose memory is limited to `limit` bytes."""

    def __init__(self, limit):
        root, self.version = group_root()
        if self.version == 2:
            control = root / "cgroup.subtree_control"
            for kind in ("memory", "io"):
                if kind in (root / "cgroup.controllers").read_text().split() and kind not in control.read_text().split():
                    control.write_text(f"+{kind}")
        for left in root.glob(GROUP_PREFIX + "*"):
            # The name says whose it is; one that still has processes cannot be removed.
            if not Path("/proc", left.name.removeprefix(GROUP_PREFIX)).exists():
                try:
                    left.rmdir()
                except OSError:
                    pass
        self.path = root / f"{GROUP_PREFIX}{os.getpid()}"
        self.path.mkdir()
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        (self.path / name).write_text(str(limit))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + 10
        while self.path.exists():
            try:
                self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    print(f"lab: {self.path} is still in use and was left", file=sys.stderr)
                    return
                time.sleep(0.1)

    def join(self):
        """Moves the calling process into the group: for preexec_fn."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def counters(self):
        """Faults and refaults since the group was made, and what its memory holds now, in bytes."""
        fields = {}
        for line in (self.path / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            fields[name] = int(value)
        counted = {name: fields.get(name, 0) for name in STAT_FIELDS}
        if self.version == 2:
            counted["cache"] = fields.get("file", 0)
            counted["anonymous"] = fields.get("anon", 0)
            counted["kernel"] = fields.get("kernel", 0)
        else:
            counted["cache"] = fields.get("cache", 0)
            counted["anonymous"] = fields.get("rss", 0)
            counted["kernel"] = int((self.path / "memory.kmem.usage_in_bytes").read_text())
        return counted


class Disk:
    """An ext4 file system on a loop device over a file in `directory`, mounted at `directory`/mount.

    `journal`: with ext4's journal, as file systems have it in real life; without, only what programs write is written. `inodes`: how
    many files there is room for, if that is more than the usual.
    """

    def __init__(self, directory, size, readahead_kib=128, journal=False, inodes=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.image, self.mount = self.directory / "image", self.directory / "mount"
        self.readahead_kib = readahead_kib
        self.remove()
        free = os.statvfs(self.directory)
        if free.f_bavail * free.f_frsize < size + (1 << 30):
            self.directory.rmdir()
            raise Skipped(f"{self.directory} has no room for {size >> 20} MiB and 1 GiB more")
        # Allocated whole: a sparse file's blocks would be allocated, and charged, while it is measured.
        with open(self.image, "wb") as image:
            os.posix_fallocate(image.fileno(), 0, size)
        words = [] if journal else ["-O", "^has_journal"]
        if inodes:
            words += ["-N", str(inodes)]
        run("mkfs.ext4", "-q", "-b", "4096", *words, "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self.image))
        self.mount.mkdir()
        self.limited = None
        self.attach()

    def attach(self):
        """Attaches the loop device and mounts it."""
        self.loop = run("losetup", "--find", "--show", str(self.image)).strip()
        name = Path(self.loop).name
        (Path("/sys/block") / name / "queue/read_ahead_kb").write_text(str(self.readahead_kib))
        self.stat = Path("/sys/block") / name / "stat"
        self.number = (Path("/sys/block") / name / "dev").read_text().strip()
        run("mount", "-o", "noatime", self.loop, str(self.mount))

    def limit(self, requests, group=None):
        """Lets the device do so many reads, and so many writes, a second. Version 1 of control groups limits the device for all; version
        2 only `group`, so everything that writes has to be in it."""
        version, root = io_limits()
        if version == "v1":
            for kind in ("read", "write"):
                (root / f"blkio.throttle.{kind}_iops_device").write_text(f"{self.number} {requests}")
        else:
            (group.path / "io.max").write_text(f"{self.number} riops={requests} wiops={requests}")
        self.limited = (version, root)

    def unlimit(self):
        """Takes the limits back. In version 2 they go with the group."""
        if self.limited and self.limited[0] == "v1":
            for kind in ("read", "write"):
                (self.limited[1] / f"blkio.throttle.{kind}_iops_device").write_text(f"{self.number} 0")
        self.limited = None

    def sync(self):
        """Writes all changed pages of the file system, as the kernel does after a while."""
        root = os.open(self.mount, os.O_RDONLY)
        try:
            ctypes.CDLL(None).syncfs(root)
        finally:
            os.close(root)

    def detach(self):
        """Unmounts and detaches: nothing of it stays in the page cache."""
        self.unlimit()
        for _ in range(50):
            if subprocess.run(["umount", str(self.mount)], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        # Not `run`: a failure here must not hide why the experiment ends.
        done = subprocess.run(["losetup", "--detach", self.loop], capture_output=True, text=True)
        if done.returncode:
            print(f"lab: {done.stderr.strip()}", file=sys.stderr)

    def fresh(self):
        """Empties its page cache."""
        self.detach()
        self.attach()

    def remove(self):
        """Removes what an earlier experiment has left in the directory."""
        subprocess.run(["umount", str(self.mount)], capture_output=True)
        for line in run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines():
            name, _, back = line.strip().partition(" ")
            if back.strip().removesuffix(" (deleted)") == str(self.image):
                run("losetup", "--detach", name)
        if self.mount.exists():
            self.mount.rmdir()
        self.image.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unlimit()
        self.detach()
        self.remove()
        try:
            self.directory.rmdir()
        except OSError:
            # Something else lies in it.
            pass

    def counters(self):
        """Pages read from and written to the device, and requests, since it was attached."""
        fields = [int(word) for word in self.stat.read_text().split()]
        sectors = PAGE // 512
        return {
            "pages_read": fields[2] / sectors,
            "read_requests": fields[0],
            "pages_written": fields[6] / sectors,
            "write_requests": fields[4],
        }


def end_on_signals():
    """Has SIGTERM end an experiment as Ctrl-C does, so that what it made is removed."""
    def end(*_):
        ENDING.append(True)
        sys.exit(ENDED_BY_SIGNAL)
    signal.signal(signal.SIGTERM, end)


class Skipped(Exception):
    """That this machine cannot do an experiment, and why."""


def tree(pid):
    """The ids of a process and of all that it has started."""
    ids = [pid]
    for known in ids:
        for task in Path(f"/proc/{known}/task").glob("*/children"):
            try:
                ids += [int(word) for word in task.read_text().split()]
            except OSError:
                pass
    return ids


def cpu_seconds(pid):
    """CPU time of a process, of its children that live and of those that have ended and were waited for."""
    return sum(cpu_of_one(one) for one in tree(pid))


def cpu_of_one(pid):
    """The same of one process: by the scheduler's nanoseconds, unless threads have ended, whose time only the ticks (10 ms) still have."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        exact = sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except (OSError, IndexError):
        return 0.0
    own, waited = (sum(int(word) for word in fields[first:first + 2]) / os.sysconf("SC_CLK_TCK") for first in (11, 13))
    # Ticks run behind by less than two of them.
    return waited + (exact if exact > own - 0.02 else own)


def memory_bytes(pid):
    """Resident memory that is not shared with files, of a process and its children."""
    total = 0
    for one in tree(pid):
        try:
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def difference(now, before):
    """Of two answers of `counters`, what came between."""
    return {key: now[key] - before[key] for key in now}


def facts(roundel):
    """What identifies the machine and the programs: words for the report. Other facts mean other figures."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    digest = hashlib.sha256(Path(roundel).read_bytes()).hexdigest()[:12]
    found = {"processors": f"{os.cpu_count()} x {model}", "memory": f"{memory} MiB", "kernel": f"Linux {platform.release()}",
             "roundel": f"{run(roundel, '--version').split()[-1]} (sha256 {digest}...)"}
    limits = io_limits()
    found["control groups"] = f"version {group_root()[1]}, requests limited by {limits[0] if limits else 'nothing'}" if group_root() else "none"
    for package in ("rrdtool", "rrdcached", "mrtg", "snmpd", "collectd-core", "gmetad"):
        asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
        found[package] = asked.stdout or "not installed"
    return found
