"""The sides of the lab's experiments: how a peer is started, given values, asked, and stopped.

A side that has the methods of `Store` takes passes of updates. All processes that are started here die with the lab, however it ends.
"""

import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import machine

LAB = Path(__file__).parent
PR_SET_PDEATHSIG = 1
START_LIMIT = 60
# Lines of a BATCH: less than a socket buffer, so that a batch of errors cannot block both ends.
BATCH_LINES = 4000


def start(words, group=None, log=None, env=None, cwd=None, **pipes):
    """Starts a program, in a control group if one is given, that dies with the lab. Its output goes to the file `log`."""
    def prepare():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if group:
            group.join()
    words = [machine.which(words[0]) or words[0], *map(str, words[1:])]
    out = open(log, "ab") if log else subprocess.DEVNULL
    pipes.setdefault("stdout", out)
    pipes.setdefault("stderr", out)
    pipes.setdefault("stdin", subprocess.DEVNULL)
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC", **(env or {})}
    for name in ("RRDCACHED_ADDRESS", "RRDCACHED_STRIPPATH"):
        if name not in (env or {}):
            environment.pop(name, None)
    try:
        return subprocess.Popen(words, preexec_fn=prepare, env=environment, cwd=cwd, **pipes)
    finally:
        if log:
            out.close()


def stop(process, seconds=60):
    """Asks a process to end, and ends it if it does not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, done, process=None, seconds=START_LIMIT):
    """Waits until `done()`; says `what` did not happen otherwise."""
    deadline = time.monotonic() + seconds
    while not done():
        if process and process.poll() is not None:
            raise SystemExit(f"lab: {what}: it ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise SystemExit(f"lab: {what}: not after {seconds} s")
        time.sleep(0.02)


def compiled(folder, name, *words):
    """The executable of lab/NAME.c."""
    program = Path(folder) / name
    machine.run("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(LAB / f"{name}.c"), *words)
    return program


class Tool:
    """`rrdtool -`; `preload` is a library that it is started with, `program` speaks the same protocol in its place. An error ends the part,
    but for one whose text has `tolerated`: those are counted in `refused`."""

    def __init__(self, directory, group=None, preload=None, env=None, program=("rrdtool", "-")):
        env = {**(env or {}), **({"LD_PRELOAD": str(preload)} if preload else {})}
        self.process = start(program, group, env=env, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answered, self.wrong = 0, []
        self.arrived = threading.Condition()
        self.ended, self.tolerated, self.refused = False, None, 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.arrived:
                if line.startswith(b"ERROR") and self.tolerated and self.tolerated in line:
                    self.refused += 1
                elif line.startswith(b"ERROR"):
                    self.wrong.append(line.decode(errors="replace").strip())
                if line.startswith((b"OK", b"ERROR")):
                    self.answered += 1
                    self.arrived.notify()
        with self.arrived:
            self.ended = True
            self.arrived.notify()

    def ask(self, lines):
        """Sends commands and waits until all are answered."""
        with self.arrived:
            until = self.answered + len(lines)
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())
        self.process.stdin.flush()
        with self.arrived:
            while self.answered < until and not self.ended:
                self.arrived.wait()
            if self.wrong or self.answered < until:
                raise SystemExit(f"lab: rrdtool: {self.wrong[:1] or 'it ended'}")

    def ask_lines(self, lines):
        """For programs of the lab: lines, of which only the empty one after them is answered."""
        with self.arrived:
            until = self.answered + 1
        self.process.stdin.write("".join(line + "\n" for line in [*lines, ""]).encode())
        self.process.stdin.flush()
        with self.arrived:
            while self.answered < until and not self.ended:
                self.arrived.wait()
            if self.answered < until:
                raise SystemExit("lab: the program that was fed ended")

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()


class Lines:
    """A client of rrdcached's protocol."""

    def __init__(self, address, process=None):
        where = address.removeprefix("unix:")
        def connected():
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(where)
                return True
            except OSError:
                self.socket.close()
                return False
        wait_until(f"a connection to {where}", connected, process)
        self.file = self.socket.makefile("rwb")

    def command(self, line):
        """One command; returns the first line of the answer and the others."""
        self.file.write(line.encode() + b"\n")
        self.file.flush()
        first = self.file.readline().decode()
        count = int(first.split()[0]) if first else -1
        if count < 0:
            raise SystemExit(f"lab: {line[:80]}: {first.strip() or 'the connection ended'}")
        return first.strip(), [self.file.readline().decode().rstrip("\n") for _ in range(count)]

    def pipelined(self, lines, at_once=200):
        """Commands, of which each has an answer of one line."""
        for at in range(0, len(lines), at_once):
            part = lines[at:at + at_once]
            self.file.write("".join(line + "\n" for line in part).encode())
            self.file.flush()
            for line in part:
                answer = self.file.readline()
                if not answer.startswith(b"0 "):
                    raise SystemExit(f"lab: {line[:80]}: {answer.decode().strip()}")

    def batch(self, lines):
        """Updates, by BATCH."""
        for at in range(0, len(lines), BATCH_LINES):
            self.file.write(("BATCH\n" + "".join(line + "\n" for line in lines[at:at + BATCH_LINES]) + ".\n").encode())
            self.file.flush()
            self.file.readline()
            answer = self.file.readline()
            if not answer.startswith(b"0 "):
                raise SystemExit(f"lab: BATCH: {answer.decode().strip()} {self.file.readline().decode().strip()}")

    def statistics(self):
        return {name: int(value) for name, value in (line.split(": ") for line in self.command("STATS")[1])}

    def flush_all(self, written):
        """Has everything written, and waits until `written` values in all are."""
        self.command("FLUSHALL")
        while self.statistics()["DataSetsWritten"] < written:
            time.sleep(0.02)

    def close(self):
        self.file.close()
        self.socket.close()


class Daemon:
    """A process with a socket of rrdcached's protocol in a folder of its own, and a client."""

    def __init__(self, words, folder, address, group=None):
        self.folder, self.address, self.words, self.group = folder, address, words, group
        self.log = Path(folder.name) / "log"
        self.launch()

    def launch(self):
        self.process = start(self.words, self.group, self.log)
        self.lines = Lines(self.address, self.process)

    def end(self):
        """Ends it at once: what it has not written is not needed any more."""
        self.kill()
        self.folder.cleanup()

    def kill(self):
        self.lines.close()
        self.process.kill()
        self.process.wait()


def rrdcached(base, group=None, wait=1000000, journal=None, tcp=None, threads=1, words=()):
    """rrdcached, which writes after `wait` seconds, or if it is told to."""
    folder = tempfile.TemporaryDirectory(prefix="roundel-lab-")
    address = f"unix:{folder.name}/socket"
    words = ["rrdcached", "-g", "-l", address, "-b", base, "-B", "-R", "-w", wait, "-f", 2 * wait, "-t", threads, "-p", folder.name + "/pid", *words]
    if journal:
        Path(journal).mkdir(parents=True, exist_ok=True)
        words += ["-j", journal]
    if tcp:
        words += ["-l", f"127.0.0.1:{tcp}"]
    return Daemon(words, folder, address, group)


def roundel(program, base, store, layout="stripes", group=None, sections="", tcp=None, http=None, placeholders=True, wait=1000000):
    """Roundel as a daemon; `sections` are added to its configuration. In files layout it writes after `wait` seconds, or if it is told to."""
    folder = tempfile.TemporaryDirectory(prefix="roundel-lab-")
    address = f"unix:{folder.name}/socket"
    Path(base).mkdir(parents=True, exist_ok=True)
    text = (f'layout = "{layout}"\nstore = "{store}"\nbase = "{base}"\nplaceholders = {str(placeholders).lower()}\n'
            f'[log]\nlevel = "warn"\n[[listen]]\naddress = "{address}"\n')
    if tcp:
        text += f'[[listen]]\naddress = "127.0.0.1:{tcp}"\n'
    if http:
        text += f'[http]\nlisten = ["127.0.0.1:{http}"]\n'
    if layout == "files":
        text += f'[files]\nwrite_interval = "{wait}s"\nflush_interval = "{2 * wait}s"\nwrite_threads = 1\n'
    config = Path(folder.name) / "roundel.toml"
    config.write_text(text + sections)
    return Daemon([program, "serve", "--config", config], folder, address, group)


class S3:
    """versitygw, or moto, over a directory, with a bucket `lab`."""

    def __init__(self, folder):
        self.port = free_port()
        self.folder = Path(folder)
        (self.folder / "root/lab").mkdir(parents=True)
        own = machine.which("versitygw") or LAB.parent / "target/versitygw/versitygw"
        if Path(own).exists():
            self.name = "versitygw"
            words = [own, "--access", "an-id", "--secret", "a-secret", "--port", f"127.0.0.1:{self.port}", "posix",
                     "--sidecar", self.folder / "side", self.folder / "root"]
            (self.folder / "side").mkdir()
        elif machine.which("moto_server"):
            self.name = "moto"
            words = ["moto_server", "-p", self.port]
        else:
            raise machine.Skipped("no S3 server: versitygw (needs Go) or moto_server: make peers")
        self.process = start(words, log=self.folder / "log")
        wait_until(self.name, lambda: answers(self.port), self.process)
        if self.name == "moto":
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/lab", method="PUT"))

    def section(self):
        return (f'[backup]\nto = "s3://lab/x"\nendpoint = "http://127.0.0.1:{self.port}"\nregion = "us-east-1"\n'
                'access_key_id = "an-id"\nsecret_access_key = "a-secret"\ninterval = "1s"\n')

    def end(self):
        stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


def answers(port):
    """Whether something listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def get(port, path, words=()):
    """What an HTTP server answers; `words` are pairs of its query."""
    query = "?" + urllib.parse.urlencode(words) if words else ""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}{query}", timeout=600) as answer:
        return answer.read()


def metric(port, name):
    """A number of Roundel's /metrics, summed over its labels."""
    total, found = 0.0, False
    for line in get(port, "/metrics").decode().splitlines():
        if line.startswith((name + " ", name + "{")):
            total, found = total + float(line.rsplit(" ", 1)[1]), True
    return total if found else None


def more_files(count):
    """Lets this process and those that it starts open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
