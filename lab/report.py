"""Writes lab/RESULTS.md and its pictures of what was measured: tables by report, each figure from the run's results or quoted."""

import statistics
from pathlib import Path

import pictures
from pictures import number

LAB = Path(__file__).parent
PATH = LAB / "RESULTS.md"
PEER, OURS = 0, 1


def ratio(value, base):
    """How many times `base` a value is; or the inverse as a part."""
    if value is None or base is None or not base:
        return "-"
    return f"{number(value / base)} x" if value else "none"


def usable(parts, names):
    """The parts of these names that were measured."""
    return {name: parts[name] for name in names if name in parts and "skipped" not in parts[name] and "failed" not in parts[name]}


def missing(parts):
    """Lines about parts that were skipped or have failed."""
    return [f"* {name}: {'skipped' if 'skipped' in part else 'failed'}: {part.get('skipped') or part['failed']}"
            for name, part in parts.items() if "skipped" in part or "failed" in part]


def colour(name):
    return OURS if name.startswith("Roundel") or "+ Roundel" in name else PEER


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)])


def compared(rows):
    """The rows that each experiment has: what the report measured, what we did, the ratio, and a sentence."""
    return table(["what", "the report", "here", "ratio here", "in a sentence"], rows)


def loads(parts):
    """Between which bounds the machine's load was."""
    seen = [load for part in parts.values() for load in part.get("load", [])]
    return f"Load of the machine before and after the parts: {min(seen)} to {max(seen)}." if seen else ""


def section(title, quote, pictured, tables, parts, command, notes):
    words = [f"## {title}", "", f"*The report*: {quote}", ""]
    for name, alt in pictured:
        words += [pictures.embed(name, alt), ""]
    for each in tables:
        words += [each, ""]
    words += [*notes, *missing(parts), "", f"{loads(parts)} Again: `{command}`", ""]
    return "\n".join(words)


def head(kept, given):
    full = " --full" if given.full else ""
    facts = "\n".join(f"| {name} | {value} |" for name, value in kept["facts"].items())
    return f"""# The five reports, run again

Written by `lab/run.py{full}` from what it measured between {kept["began"]} and {kept.get("ended", "now (not complete)")}. Nothing here is typed in but words, and what
is quoted from the reports (`mission.md` of the project; R1 to R5). {"The reports' own sizes, as far as this disk has room for them." if given.full else
"Sizes are scaled down to take minutes (`make lab-full` has larger ones); what is smaller than in the report is said with each."}

| machine | |
|---|---|
{facts}

Ratios compare sides that were measured one after the other in this run. Wall-clock times depend on what else the machine did: the load is given; CPU time and the device's own
counters (of a loop device with a file system of its own) do not.
"""


def write(kept, given):
    """Writes the report."""
    import reports
    full = " --full" if given.full else ""
    words = [head(kept, given)]
    for name, make in reports.SECTIONS:
        parts = kept["parts"].get(name, {})
        if parts:
            words.append(make(parts, f"sudo lab/run.py{full} --only {name} --again"))
    words.append("The page-fault model beside real programs over its whole staircase: [staircase.md](staircase.md). How far one machine goes: [scale.md](scale.md).\n")
    PATH.write_text("\n".join(words))


def median(values):
    return statistics.median(values) if values else None


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
