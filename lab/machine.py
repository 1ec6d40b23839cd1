"""What the lab's experiments use of a machine: a loop device with a file system of its own, and a control group with limited memory.

Both need root. Everything that is made here is removed again when the `with` ends, also after Ctrl-C. What an experiment that was
killed has left (a mount below DIR, a group named roundel-lab-*) the next one removes first.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PAGE = 4096
GROUP_PREFIX = "roundel-lab-"
# Fields of memory.stat that both versions of control groups have.
STAT_FIELDS = ("pgmajfault", "pgfault", "workingset_refault_file")


def run(*words, **more):
    """Runs a program and returns what it printed; its failure ends the experiment with its own words."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"lab: {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def missing():
    """What this machine lacks for the experiments, as texts; empty if nothing."""
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root, for a loop device and a control group: run it with sudo")
    if not Path("/dev/loop-control").exists():
        lacks.append("loop devices: modprobe loop")
    for program in ("losetup", "mkfs.ext4", "mount", "rrdtool", "rrdcached"):
        if shutil.which(program) is None:
            lacks.append(f"the program {program}: make peers")
    if group_root() is None:
        lacks.append("the memory controller of control groups, version 1 or 2")
    return lacks


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
            if "memory" not in control.read_text().split():
                control.write_text("+memory")
        for left in root.glob(GROUP_PREFIX + "*"):
            # One that still has processes belongs to an experiment that is running.
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
    """An ext4 file system on a loop device over a file in `directory`, mounted at `directory`/mount."""

    def __init__(self, directory, size, readahead_kib=128):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.image, self.mount = self.directory / "image", self.directory / "mount"
        self.readahead_kib = readahead_kib
        self.remove()
        # Written whole: a sparse file's blocks would be allocated, and charged, while it is measured.
        with open(self.image, "wb") as image:
            block = bytes(1 << 20)
            for _ in range(-(-size // len(block))):
                image.write(block)
        # Without a journal: it would double what is written, and is no part of the model.
        run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", str(self.image))
        self.mount.mkdir()
        self.attach()

    def attach(self):
        """Attaches the loop device and mounts it."""
        self.loop = run("losetup", "--find", "--show", str(self.image)).strip()
        name = Path(self.loop).name
        (Path("/sys/block") / name / "queue/read_ahead_kb").write_text(str(self.readahead_kib))
        self.stat = Path("/sys/block") / name / "stat"
        run("mount", "-o", "noatime", self.loop, str(self.mount))

    def detach(self):
        """Unmounts and detaches: nothing of it stays in the page cache."""
        for _ in range(50):
            if subprocess.run(["umount", str(self.mount)], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        run("losetup", "--detach", self.loop)

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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
