#!/usr/bin/env python3
"""Rows a second of `roundel export --to postgres://`, beside psql's \\copy of a CSV of the same rows into the same tables.

    bench/postgres.py [--roundel target/release/roundel] [--rrds 200] [--rows 5000] [--runs 5]

Needs Debian's postgresql. Both write to a server of their own on a socket, in turn, with the same settings (fsync off); the median of the runs counts.
"""
import argparse, glob, os, shutil, socket, statistics, subprocess, sys, tempfile, time

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument('--roundel', default='target/release/roundel')
options.add_argument('--rrds', type=int, default=200)
options.add_argument('--rows', type=int, default=5000)
options.add_argument('--runs', type=int, default=5)
options = options.parse_args()
roundel = os.path.abspath(options.roundel)
BIN = sorted(glob.glob('/usr/lib/postgresql/*/bin'))[-1]
START = 1_700_000_000 - 1_700_000_000 % 3600
place = tempfile.mkdtemp(prefix='roundel-postgres-')
os.chmod(place, 0o777)
user = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'] if os.geteuid() == 0 else []
os.chdir(place)

def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{words}: {done.stderr}')
    return done.stdout

def fill():
    """RRDs with rows, in a store that no daemon has open when this returns."""
    os.mkdir('base')
    with open('roundel.toml', 'w') as config:
        config.write('store = "store"\nbase = "base"\nplaceholders = false\n[[listen]]\naddress = "unix:sock"\n')
    daemon = subprocess.Popen([roundel, 'serve', '--config', 'roundel.toml'], stderr=subprocess.DEVNULL)
    while not os.path.exists('sock'):
        time.sleep(0.05)
    client = socket.socket(socket.AF_UNIX)
    client.connect('sock')
    stream = client.makefile('rwb')
    def ask(line):
        stream.write(line.encode() + b'\n')
        stream.flush()
        answer = stream.readline()
        assert not answer.startswith(b'-'), answer
    for rrd in range(options.rrds):
        name = f'host-{rrd % 20}/port-{rrd}.rrd'
        ask(f'CREATE {name} -b {START} -s 60 DS:in:GAUGE:120:U:U RRA:AVERAGE:0.5:1:{options.rows}')
        for first in range(0, options.rows, 100):
            rows = range(first, min(first + 100, options.rows))
            ask(f'UPDATE {name} ' + ' '.join(f'{START + 60 * (row + 1)}:{(row * 7919 + rrd * 31) % 100000 / 7}' for row in rows))
    daemon.terminate()
    daemon.wait()

def psql(words):
    return run(f'{BIN}/psql', '-h', place, '-U', 'ann', '-d', 'postgres', '-XAtq', '-v', 'ON_ERROR_STOP=1', *words)

def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun

def main():
    fill()
    run(*user, f'{BIN}/initdb', '-A', 'trust', '-U', 'ann', '-E', 'UTF8', '--no-sync', '-D', f'{place}/data')
    server = subprocess.Popen([*user, f'{BIN}/postgres', '-D', f'{place}/data', '-k', place, '-c', 'listen_addresses=', '-F',
                               '-c', 'max_wal_size=8GB'], stderr=subprocess.DEVNULL)
    try:
        while subprocess.run([f'{BIN}/pg_isready', '-q', '-h', place]).returncode:
            time.sleep(0.1)
        url = 'postgres://ann@' + place.replace('/', '%2F') + '/postgres'
        export = lambda: run(roundel, 'export', '--all', '--from', 'store', '--to', url)
        export()
        psql(['-c', f"\\copy roundel.rows TO '{place}/rows.csv' CSV"])
        count = int(psql(['-c', 'SELECT count(*) FROM roundel.rows']))
        ours, theirs = [], []
        for _ in range(options.runs):
            psql(['-c', 'DROP SCHEMA roundel CASCADE', '-c', 'CHECKPOINT'])
            ours.append(timed(export))
            # The same table with the same key, empty.
            psql(['-c', 'TRUNCATE roundel.rows', '-c', 'CHECKPOINT'])
            theirs.append(timed(lambda: psql(['-c', f"\\copy roundel.rows FROM '{place}/rows.csv' CSV"])))
        speed = lambda times: [count / one for one in times]
        told = lambda name, times: f'{name}: {statistics.median(speed(times)):,.0f} rows/s [{min(speed(times)):,.0f}..{max(speed(times)):,.0f}]'
        print(f'{count:,} rows; {told("roundel export", ours)}; {told("psql", theirs)}; {statistics.median(theirs) / statistics.median(ours):.2f} x')
    finally:
        server.send_signal(3)
        server.wait()

try:
    main()
finally:
    os.chdir('/')
    shutil.rmtree(place, ignore_errors=True)
