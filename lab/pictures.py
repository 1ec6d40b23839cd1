"""The lab's pictures: bars and lines as SVG, each for light and for dark pages."""

import math
from html import escape
from pathlib import Path

SHADES = {
    "": {"page": "#ffffff", "text": "#1c2430", "dim": "#5b6675", "grid": "#dde2e8",
         "lines": ("#2f6fb5", "#b45f06", "#3d8b5f", "#8a4fae", "#b53a4a", "#6b7480", "#0f8b8d")},
    "-dark": {"page": "#12161c", "text": "#e4e9f0", "dim": "#9aa6b4", "grid": "#2c3440",
              "lines": ("#7db4ee", "#e8a35a", "#7fcfa2", "#c49be0", "#ef8792", "#a9b3bf", "#62d0d2")},
}
WIDTH = 760
FONT = 'font-family="DejaVu Sans, Verdana, sans-serif"'


def number(value):
    """A number with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 5)}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"


def text(x, y, words, fill, size=12, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" {FONT}>'
            f"{escape(words)}</text>")


def write(path, height, draw):
    """Both shades of a picture; `draw` gives the elements of one."""
    for end, shade in SHADES.items():
        body = "\n".join(draw(shade))
        Path(f"{path}{end}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">\n'
            f'<rect width="{WIDTH}" height="{height}" fill="{shade["page"]}"/>\n{body}\n</svg>\n')


def bars(path, title, unit, rows):
    """A horizontal bar for each (label, value, colour's number); lengths are logarithmic if values differ by more than 30 times."""
    label_width, height = 250, 56 + 26 * len(rows)
    values = [value for _, value, _ in rows if value and value > 0]
    most, least = max(values, default=1), min(values, default=1)
    logarithmic = most / least > 30
    room = WIDTH - label_width - 100
    base = math.floor(math.log10(least)) if logarithmic else 0

    def length(value):
        if not value or value <= 0:
            return 0
        if logarithmic:
            return max(2, room * (math.log10(value) - base) / (math.log10(most) - base))
        return room * value / most

    def draw(shade):
        yield text(12, 22, title, shade["text"], 14, weight="bold")
        yield text(12, 40, unit + (", logarithmic" if logarithmic else ""), shade["dim"], 11)
        for place, (label, value, colour) in enumerate(rows):
            y = 52 + 26 * place
            yield text(label_width - 8, y + 14, label, shade["text"], 12, "end")
            yield f'<rect x="{label_width}" y="{y}" width="{length(value):.1f}" height="18" rx="2" fill="{shade["lines"][colour]}"/>'
            shown = number(value) if value is not None else "not measured"
            yield text(label_width + length(value) + 6, y + 14, shown, shade["text"], 12)

    write(path, height, draw)


def ticks(low, high, logarithmic):
    """Round values between two."""
    if logarithmic:
        return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    step = 10 ** math.floor(math.log10((high - low) / 2 or 1))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    return [step * place for place in range(math.floor(low / step), math.ceil(high / step) + 1)]


def lines(path, title, across, up, series, log_x=False, log_y=False):
    """A line for each (label, [(x, y), ...])."""
    series = [(label, [(x, y) for x, y in points if y is not None and (y > 0 or not log_y)]) for label, points in series]
    points = [point for _, each in series for point in each]
    if not points:
        return
    left, top, right, bottom = 70, 52, WIDTH - 44, 330
    legend_rows = -(-len(series) // 3)
    height = bottom + 44 + 18 * legend_rows
    marks_x = ticks(min(x for x, _ in points), max(x for x, _ in points), log_x)
    low_y = min(y for _, y in points) if log_y else 0
    marks_y = ticks(low_y, max(y for _, y in points) or 1, log_y)

    def place(value, marks, begin, end, logarithmic):
        scale = math.log10 if logarithmic else float
        low, high = scale(marks[0]), scale(marks[-1])
        return begin + (end - begin) * (scale(value) - low) / ((high - low) or 1)

    def draw(shade):
        yield text(12, 22, title, shade["text"], 14, weight="bold")
        yield text(12, 40, up, shade["dim"], 11)
        for value in marks_y:
            y = place(value, marks_y, bottom, top, log_y)
            yield f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{shade["grid"]}"/>'
            yield text(left - 6, y + 4, number(value), shade["dim"], 11, "end")
        for value in marks_x:
            x = place(value, marks_x, left, right, log_x)
            yield f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{shade["grid"]}"/>'
            yield text(x, bottom + 16, number(value), shade["dim"], 11, "middle")
        yield text((left + right) / 2, bottom + 32, across, shade["dim"], 11, "middle")
        for index, (label, each) in enumerate(series):
            colour = shade["lines"][index % len(shade["lines"])]
            dash = ' stroke-dasharray="6 3"' if label.startswith("Roundel") else ""
            places = [(place(x, marks_x, left, right, log_x), place(y, marks_y, bottom, top, log_y)) for x, y in each]
            path_points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            for x, y in places:
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>'
            x, y = left + 230 * (index % 3), bottom + 52 + 18 * (index // 3)
            yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{colour}" stroke-width="3"{dash}/>'
            yield text(x + 30, y, label, shade["text"], 11)

    write(path, height, draw)


def embed(name, title):
    """Markdown of a picture that follows the reader's shade."""
    return (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{name}-dark.svg"><img alt="{escape(title)}" '
            f'src="{name}.svg"></picture>')
