#!/usr/bin/env python3
"""Runs the tests again and again while both cores and the disk are loaded, and says which did not pass each time.

    peers/soak.py target 10                        the whole suite ten times (make soak ROUNDS=10)
    peers/soak.py target 50 --filter 'package(roundel)'
                                                   each test of a filter expression of cargo-nextest 50 times
    peers/soak.py target 0                         only the report

The script can be stopped at any time. Each finished round is kept in TARGET/soak/results.tsv, one line a test, and the next
call goes on after the last finished round of the same filter. Results of other code (another commit, or other changes that are
not committed) are forgotten, and so are all with `--again`. The output of each failed test is in TARGET/soak/logs; a random
test prints its seed there.
"""

import argparse
import collections
import contextlib
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

# Both programs end when this script does, even if it is killed.
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    pass
"""
# Writes 64 MiB again and again, synced every 4 MiB, as a database beside us would.
WRITE = """
import os, sys
parent = os.getppid()
block = os.urandom(1 << 22)
with open(sys.argv[1], "wb", buffering=0) as file:
    while os.getppid() == parent:
        file.seek(0)
        for _ in range(16):
            file.write(block)
            os.fsync(file.fileno())
"""

# As in CI: nothing is skipped, and random tests run as many seeds as in `make test`, unless the environment says how many.
NO_SKIP = {"ROUNDEL_NO_SKIP": "1"}
SEEDS = {"ROUNDEL_SEEDS": "0.5x"}


class Load:
    """As many busy processes as there are cores, and one that writes to the disk, until the end of the block."""

    def __init__(self, directory):
        self.path = directory / "load"

    def __enter__(self):
        # Ctrl-C is for this script, which ends them.
        start = lambda *words: subprocess.Popen([sys.executable, "-c", *words], start_new_session=True)
        self.processes = [start(BUSY) for _ in range(os.cpu_count() or 2)]
        self.processes.append(start(WRITE, str(self.path)))

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.path.unlink(missing_ok=True)
        self.path.parent.rmdir()


class Stopped(Exception):
    """A signal told this script to end."""


def stop(signal_number, _):
    raise Stopped(signal_number)


def cases(junit):
    """Yields (test, whether it passed, seconds, output) of a report of cargo-nextest."""
    for suite in xml.parse(junit).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            failed = [element for element in case if element.tag in ("failure", "error")]
            output = "\n".join(text for element in case for text in element.itertext() if text)
            name = f"{suite.get('name')} {case.get('name')}"
            yield name, not failed, float(case.get("time") or 0), output


def environment():
    """This process's environment without what would narrow the tests or run them again."""
    narrow = ("ROUNDEL_SEED", "ROUNDEL_EXECUTABLE", "ROUNDEL_TEST_CLUSTER")
    kept = {name: value for name, value in os.environ.items() if name not in narrow and not name.startswith("NEXTEST_")}
    return SEEDS | kept | NO_SKIP


def run(arguments, directory, round_number):
    """Runs the tests once, and returns the lines for results.tsv."""
    target = arguments.target
    junit = target / "nextest" / "default" / "junit.xml"
    junit.unlink(missing_ok=True)
    command = [
        str(target / "tools" / "bin" / "cargo-nextest"), "nextest", "run", "--workspace", "--all-features", "--locked",
        "--cargo-quiet", "--profile", "default", "--no-fail-fast", "--no-tests", "pass",
    ]
    if arguments.filter:
        command += ["--ignore-default-filter", "-E", arguments.filter]
    with open(directory / f"round-{round_number}.txt", "wb") as output:
        nextest = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment())
        try:
            nextest.wait()
        finally:
            # If this script is told to end, nextest ends its tests.
            nextest.terminate()
            nextest.wait()
    # 100: tests failed.
    if nextest.returncode not in (0, 100) or not junit.exists():
        said = (directory / f"round-{round_number}.txt").read_text(errors="replace")
        sys.exit(f"{said[-4000:]}\nsoak: the tests did not run, or not all (status {nextest.returncode})")
    lines = []
    for name, passed, seconds, output in cases(junit):
        log = "-"
        if not passed:
            log = str(directory / "logs" / f"{re.sub('[^A-Za-z0-9_.]+', '-', name)}.{round_number}")
            pathlib.Path(log).write_text(output)
        lines.append("\t".join([arguments.filter, str(round_number), name, "passed" if passed else "FAILED", f"{seconds:.1f}", log]))
    if not lines:
        sys.exit(f"soak: no test matches {arguments.filter}")
    return lines


def git(*words):
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE).stdout


def revision():
    """Identifies the code: the commit, the changes since, and the files that git does not have yet."""
    top = pathlib.Path(git("rev-parse", "--show-toplevel").decode().rstrip("\n"))
    parts = [git("rev-parse", "HEAD"), git("diff", "HEAD")]
    for name in git("-C", str(top), "ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        path = top / os.fsdecode(name)
        if name and path.is_file():
            parts += [name, path.read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_of_this_code(directory):
    """True if the results are of the code as it is now."""
    note = directory / "revision"
    return note.exists() and note.read_text() == revision()


def report(lines, expression):
    """Prints each test that failed at least once, with its logs. Returns whether all passed each time."""
    filters = {line.split("\t")[0] for line in lines}
    if expression not in filters:
        others = ", ".join(sorted(name or "the whole suite" for name in filters))
        print(f"soak: no results of {expression or 'the whole suite'}" + (f"; there are results of: {others}" if others else ""))
        return False
    runs, failures = collections.Counter(), collections.defaultdict(list)
    for line in lines:
        row_filter, _, name, outcome, _, log = line.split("\t")
        if row_filter == expression:
            runs[name] += 1
            if outcome != "passed":
                failures[name].append(log)
    for name in sorted(failures):
        print(f"{name}: failed {len(failures[name])} of {runs[name]} times")
        for log in failures[name]:
            print(f"  {log}")
    rounds = max(runs.values(), default=0)
    print(f"soak: {len(runs)} tests, {rounds} rounds, {len(failures)} did not always pass")
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=pathlib.Path, help="cargo's target directory, in which `make peers` installed")
    parser.add_argument("rounds", type=int, help="how often each test runs in the end, earlier calls included")
    parser.add_argument("--filter", default="", help="a filter expression of cargo-nextest in place of the whole of `make test`")
    parser.add_argument("--again", action="store_true", help="forget the results of earlier calls")
    parser.add_argument("--idle", action="store_true", help="without load")
    arguments = parser.parse_args()
    if not arguments.target.is_dir():
        parser.error(f"{arguments.target} is no directory (make peers makes and fills it)")
    if os.geteuid() != 0:
        parser.error("needs root: without, tests of mounts and networks would be skipped, and a skip is a failure here")
    if arguments.rounds < 0:
        parser.error("ROUNDS is a count")
    # The tests and the load end with this script.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    arguments.target = arguments.target.resolve()
    directory = arguments.target / "soak"
    (directory / "logs").mkdir(parents=True, exist_ok=True)
    results = directory / "results.tsv"
    is_current = is_of_this_code(directory)
    if arguments.again or arguments.rounds > 0 and not is_current:
        results.unlink(missing_ok=True)
        (directory / "revision").write_text(revision())
    elif results.exists() and not is_current:
        print("soak: the code has changed since these rounds")
    lines = results.read_text().splitlines() if results.exists() else []
    done = max((int(line.split("\t")[1]) for line in lines if line.split("\t")[0] == arguments.filter), default=0)
    # Compiled before the load begins.
    if done < arguments.rounds:
        build = ["cargo", "test", "--workspace", "--all-features", "--locked", "--no-run", "--quiet"]
        if subprocess.run(build).returncode != 0:
            sys.exit("soak: the tests do not compile")
    elif arguments.rounds > 0:
        print(f"soak: this code has had its {done} rounds; --again begins anew")
    for round_number in range(done + 1, arguments.rounds + 1):
        begin = time.monotonic()
        with contextlib.nullcontext() if arguments.idle else Load(pathlib.Path(tempfile.mkdtemp(dir=directory))):
            new = run(arguments, directory, round_number)
        lines += new
        # Whole rounds only: a stopped one runs again.
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as file:
            file.write("\n".join(lines) + "\n")
        os.replace(file.name, results)
        failed = sum("\tFAILED\t" in line for line in new)
        print(f"round {round_number} of {arguments.rounds}: {failed} of {len(new)} failed, {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(0 if report(lines, arguments.filter) else 1)


if __name__ == "__main__":
    try:
        main()
    except Stopped as stopped:
        print("\nsoak: stopped; the same command goes on after the last finished round", file=sys.stderr)
        sys.exit(128 + stopped.args[0])
