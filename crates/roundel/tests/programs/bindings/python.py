# Runs the calls of a file by python3-rrdtool; what comes out goes to standard error, two lines for each.
import sys
import rrdtool

left = {name for name in dir(rrdtool) if callable(getattr(rrdtool, name)) and not name.endswith(("Error", "__"))}
names = left - {"lib_version"}


def shown(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={shown(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, bytes):
        return repr(value[:4])
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    return repr(value)


def told(call, name, *words):
    left.discard(name)
    try:
        result = shown(getattr(rrdtool, name)(*words))
    except Exception as error:
        result = f"error {type(error).__name__} {error}"
    print(call, "  " + result.replace("\n", "\\n"), sep="\n", file=sys.stderr, flush=True)


for line in open(sys.argv[1]):
    call = line[2:].strip() if line[0] in "!~*?-" else line.strip()
    if line[0] != "#" and call and call.split()[0] in names:
        told(call, *call.split())


def given(request):
    print("asked", "  " + shown(request), sep="\n", file=sys.stderr, flush=True)
    return {"step": 10, "start": request["start"], "data": {"one": list(range(20)), "two": [None, 1.5] * 10}}


told("create of lists", "create", "l.rrd", ["-b", "1000000000"], ["DS:x:GAUGE:30:U:U"], "RRA:LAST:0.5:1:5")
told("update of a number", "update", "l.rrd", 5)
told("register", "register_fetch_cb", given)
exported = ["xport", "-s", "1000000000", "-e", "1000000060", "DEF:a=cb//mine:two:AVERAGE", "XPORT:a"]
told("xport of a callback", *exported)
told("graph of a callback", "graph", "cb.png", "-s", "1000000000", "-e", "1000000060", "DEF:a=cb//mine:one:MAX",
     "LINE:a#ff0000", "PRINT:a:MAX:%lf")
told("clear", "clear_fetch_cb")
told("xport without the callback", *exported)
print("never called", "  " + " ".join(sorted(left - {"lib_version"})), sep="\n", file=sys.stderr)
