#!/usr/bin/env python3
"""The queries of Prometheus' compliance suite, to Roundel and to a Prometheus with the same samples.

    bench/promql_compliance.py QUERIES.yml [ROUNDEL] [PROMETHEUS]

QUERIES.yml is promql/promql-test-queries.yml of github.com/prometheus/compliance; it is not kept here. The samples are made up in the shape of the
suite's demo service: three instances, a sample every 5 s for three hours, all of them levels in Roundel, so that rows are the samples. promtool makes blocks
of them and `roundel import` RRDs. Each query is asked over 90 minutes in steps of 10 s, shifted by 2 s: between two samples, ranges of Prometheus 2
and 3 mean the same. Every difference is printed. It takes a minute.
"""
import json, math, os, random, re, shutil, socket, subprocess, sys, tempfile, time, urllib.error, urllib.parse, urllib.request

STEP, COUNT = 5, 3 * 720
START = 1_700_000_000 // STEP * STEP
SIMPLE = ["sum", "avg", "max", "min", "count", "stddev", "stdvar"]
ARITHMETIC, COMPARE = ["+", "-", "*", "/", "%", "^"], ["==", "!=", "<", ">", "<=", ">="]
# What the suite puts in place of {{.name}}.
VARIANTS = {
    "range": ["1s", "15s", "1m", "5m", "15m", "1h"],
    "offset": ["1m", "5m", "10m"],
    "simpleAggrOp": SIMPLE,
    "simpleTimeAggrOp": SIMPLE + ["absent", "last", "present"],
    "topBottomOp": ["topk", "bottomk"],
    "quantile": ["-0.5", "0.1", "0.5", "0.75", "0.95", "0.90", "0.99", "1", "1.5"],
    "arithBinOp": ARITHMETIC,
    "compBinOp": COMPARE,
    "binOp": ARITHMETIC + COMPARE,
    "simpleMathFunc": ["abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "round"],
    "extrapolatedRateFunc": ["delta", "rate", "increase"],
    "instantRateFunc": ["idelta", "irate"],
    "clampFunc": ["clamp_min", "clamp_max"],
    "dateFunc": ["day_of_month", "day_of_week", "days_in_month", "hour", "minute", "month", "year"],
}


def queries(path):
    """(query, whether it has to fail) of each variant."""
    unquote = lambda text: (
        json.loads(text) if text.startswith('"') else text[1:-1].replace("''", "'") if text.startswith("'") else text
    )
    found, entry = [], None
    for line in open(path):
        if match := re.match(r"\s*(?:-\s+)?query:\s*(.*\S)\s*$", line):
            entry = [unquote(match[1]), [], False]
            found.append(entry)
        elif match := re.match(r"\s*variant_args:\s*\[(.*)\]", line):
            entry[1] = re.findall(r"'(\w+)'", match[1])
        elif re.match(r"\s*should_fail:\s*true", line):
            entry[2] = True
    for query, names, fails in found:
        variants = [query]
        for name in names:
            variants = [v.replace("{{.%s}}" % name, value) for v in variants for value in VARIANTS[name]]
        yield from ((variant, fails) for variant in variants)


def series():
    """(metric, labels, values) with None where there is no sample."""
    chance = random.Random(1)
    walk = lambda start, size: [start := max(0.0, float(int(start + chance.uniform(-size, size)))) for _ in range(COUNT)]
    def counter(rate):
        value, out = 0.0, []
        for _ in range(COUNT):
            value = 0.0 if chance.random() < 0.0005 else value + chance.uniform(0, 2 * rate)
            out.append(value)
        return out
    for instance in ("demo.promlabs.com:10000", "demo.promlabs.com:10001", "demo.promlabs.com:10002"):
        base = {"instance": instance, "job": "demo"}
        for kind in ("buffers", "cached", "free", "used"):
            yield "demo_memory_usage_bytes", base | {"type": kind}, walk(4e9, 1e8)
        yield "demo_num_cpus", base, [4.0] * COUNT
        for mode in ("idle", "system", "user"):
            yield "demo_cpu_usage_seconds_total", base | {"mode": mode}, counter(2.0)
        yield "demo_disk_usage_bytes", base, [1e10 + 1e6 * i + chance.uniform(0, 1e5) for i in range(COUNT)]
        yield "demo_batch_last_success_timestamp_seconds", base, [float(START + i * STEP // 120 * 120) for i in range(COUNT)]
        yield "demo_intermittent_metric", base, [1.0 if (i // 60) % 2 else None for i in range(COUNT)]
        for path in ("/api/foo", "/api/bar"):
            rungs = [f"{0.0001 * 1.5 ** rung:.9f}".rstrip("0") for rung in range(12)] + ["+Inf"]
            parts = [counter(1.0 / len(rungs)) for _ in rungs]
            sums = [0.0] * COUNT
            for le, part in zip(rungs, parts):
                sums = [a + b for a, b in zip(sums, part)]
                labels = base | {"le": le, "method": "GET", "path": path, "status": "200"}
                yield "demo_api_request_duration_seconds_bucket", labels, [float(int(v)) for v in sums]
            labels = base | {"method": "GET", "path": path, "status": "200"}
            yield "demo_api_request_duration_seconds_count", labels, [float(int(v)) for v in sums]
            yield "demo_api_request_duration_seconds_sum", labels, counter(0.3)


def write_samples(path):
    by_metric = {}
    for metric, labels, values in series():
        by_metric.setdefault(metric, []).append((labels, values))
    with open(path, "w") as out:
        for metric in sorted(by_metric):
            out.write(f"# TYPE {metric} unknown\n")
            for labels, values in by_metric[metric]:
                text = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
                for index, value in enumerate(values):
                    if value is not None:
                        out.write(f"{metric}{{{text}}} {value!r} {START + index * STEP}\n")
        out.write("# EOF\n")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, query):
    start = START + 5400 + 2
    form = {"query": query, "start": start, "end": start + 5390, "step": 10}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/query_range", urllib.parse.urlencode(form).encode("utf-8", "surrogateescape"))
    try:
        return json.load(urllib.request.urlopen(request, timeout=60))
    except urllib.error.HTTPError as error:
        return json.load(error)


def are_close(a, b):
    x, y = float(a), float(b)
    return x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= 1e-5 * max(abs(x), abs(y))


def difference(ours, theirs):
    """The first difference of two matrices, or None."""
    if ours["status"] != theirs["status"]:
        return f"status {ours.get('error', 'success')!r}, not {theirs.get('error', 'success')!r}"
    if ours["status"] == "error":
        return None
    key = lambda s: json.dumps(s["metric"], sort_keys=True)
    a, b = ({key(s): s["values"] for s in answer["data"]["result"]} for answer in (ours, theirs))
    if a.keys() != b.keys():
        return f"series {sorted(a.keys() - b.keys())[:2]} more, {sorted(b.keys() - a.keys())[:2]} fewer ({len(a)}, {len(b)})"
    for name in a:
        if [t for t, _ in a[name]] != [t for t, _ in b[name]]:
            return f"{name}: {len(a[name])} points, not {len(b[name])}"
        for (t, x), (_, y) in zip(a[name], b[name]):
            if not are_close(x, y):
                return f"{name} at {t}: {x}, not {y}"
    return None


def main():
    roundel = sys.argv[2] if len(sys.argv) > 2 else "target/quick/roundel"
    prometheus = sys.argv[3] if len(sys.argv) > 3 else "/usr/bin/prometheus"
    directory = tempfile.mkdtemp(prefix="roundel-compliance.")
    inside = lambda name: os.path.join(directory, name)
    programs = []
    try:
        write_samples(inside("samples"))
        with open(inside("rules.toml"), "w") as out:
            out.write(f'[[create]]\npath = "demo/{{name}}"\nstep = "{STEP}s"\nheartbeat = "{STEP}s"\ntype = "GAUGE"\narchives = ["RRA:AVERAGE:0.5:1:{COUNT + 100}"]\n')
        with open(inside("p.yml"), "w") as out:
            out.write("global: {}\n")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": open(inside("log"), "w")}
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", inside("samples"), inside("data")], check=True, **quiet)
        ours, theirs = free_port(), free_port()
        programs.append(subprocess.Popen([roundel, "serve", "--config", inside("rules.toml"), "--store", inside("store"), "--base", inside("tree"), "--http", f"127.0.0.1:{ours}", "--listen", f"unix:{inside('socket')}"], **quiet))
        programs.append(subprocess.Popen([prometheus, f"--config.file={inside('p.yml')}", f"--storage.tsdb.path={inside('data')}", "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{theirs}"], **quiet))
        for port in (ours, theirs):
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=1", timeout=5)
                    break
                except OSError:
                    time.sleep(0.1)
        subprocess.run([roundel, "import", "--format", "openmetrics", "--create", inside("rules.toml"), "--to", f"unix:{inside('socket')}", inside("samples")], check=True)
        compared, unequal, empty = 0, 0, 0
        for query, fails in queries(sys.argv[1]):
            answers = [ask(port, query) for port in (ours, theirs)]
            compared += 1
            empty += answers[1]["status"] == "success" and not answers[1]["data"]["result"]
            found = difference(*answers)
            if fails and answers[0]["status"] != "error":
                found = (found or "") + " (has to fail)"
            if found:
                unequal += 1
                print(f"{query}\n    {found}")
        print(f"{compared} queries, {unequal} answers differ; {empty} answers of Prometheus have no series")
        sys.exit(unequal > 0)
    finally:
        for program in programs:
            program.terminate()
            program.wait()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
