"""Charts as small inline SVGs: lines over time, and intervals in rows (a forest plot).

They take their colours from the page (CSS variables with the usual colour as a fallback, and
``currentColor`` for text and axes), so they follow light and dark and can be saved as files of
their own. The values of a line chart are in its attribute ``data-chart``, for the script that
shows them under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from logeval.reports.style import Look, css_colour, look
from logeval.reports.words import interval, number, p_value
from logeval.running.arrays import Floats

LETTER = 7.3  # width of a letter of 12 px, in the widest of the usual fonts
GREY = "var(--soft, #777777)"
MARKERS = {
    "o": "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0",
    "s": "M-2.7,-2.7h5.4v5.4h-5.4z",
    "^": "M0,-3.5l3.4,6h-6.8z",
    "v": "M0,3.5l3.4,-6h-6.8z",
    "D": "M0,-3.6l3.6,3.6l-3.6,3.6l-3.6,-3.6z",
    "<": "M-3.5,0l6,3.4v-6.8z",
    ">": "M3.5,0l-6,3.4v-6.8z",
    "P": "M-1.2,-3.4h2.4v2.2h2.2v2.4h-2.2v2.2h-2.4v-2.2h-2.2v-2.4h2.2z",
    "X": "M-3,-3L3,3M3,-3L-3,3",
    "*": "M0,-3.6V3.6M-3.2,-1.8L3.2,1.8M-3.2,1.8L3.2,-1.8",
}


@dataclass(frozen=True)
class Frame:
    """The place of a plot within a chart, and its scales."""

    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    log_x: bool = False

    def px(self, t: Floats) -> Floats:
        """Horizontal place of steps t."""
        low, high = self.x
        if self.log_x:
            t, low, high = np.log(t), math.log(low), math.log(high)
        return self.left + (t - low) / max(high - low, 1e-12) * (self.right - self.left)

    def py(self, value: Floats) -> Floats:
        """Vertical place of values; what is above the plot stays at its upper edge."""
        low, high = self.y
        value = np.minimum(value, high)
        return self.bottom - (value - low) / max(high - low, 1e-12) * (self.bottom - self.top)


def line_chart(
    curves: Mapping[str, pd.DataFrame],
    title: str,
    *,
    value: str = "regret",
    y_label: str = "cumulative regret",
    width: int = 420,
    height: int = 270,
    log_x: bool = False,
    bands: bool = True,
    legend: bool = True,
    dotted: Sequence[str] = (),
    dashed: Sequence[str] = (),
) -> str:
    """Curves (columns t, ``value``, low, high) by name; those in ``dotted`` are bounds.

    A name is a policy, or ``policy: what is counted``, some of which may be ``dashed``.
    """
    first = next(iter(curves.values()))
    t = first["t"].to_numpy(dtype=float)
    top = max(float(c[value].max()) for name, c in curves.items() if name not in dotted)
    highs = [float(c["high"].max()) for c in curves.values() if bands and "high" in c]
    ceiling = min(max([top, *(h for h in highs if h == h)]), 2.0 * top) if top > 0 else 1.0
    entries = legend_entries(curves, width, dotted, dashed) if legend else []
    below = 46 + (18 * (1 + entries[-1].row) if entries else 0)
    frame = Frame(56, width - 22, 26, height - 46, (t[0], t[-1]), (0.0, ceiling * 1.03), log_x)
    parts = [_axes(frame, "step t", y_label)]
    for name, curve in curves.items() if bands else ():
        if "high" in curve and curve["high"].notna().all():
            x = frame.px(curve["t"].to_numpy(dtype=float))
            up, down = (frame.py(curve[c].to_numpy()) for c in ("high", "low"))
            points = _points(np.append(x, x[::-1]), np.append(up, down[::-1]))
            parts.append(f'<polygon points="{points}" fill="{_colour(name)}" opacity="0.13"/>')
    for i, (name, curve) in enumerate(curves.items()):
        x, y = frame.px(curve["t"].to_numpy(dtype=float)), frame.py(curve[value].to_numpy())
        parts.append(_line(name, x, y, name in dotted, name in dashed, phase=i))
    parts += [_legend(entries, height)]
    hover = {
        "x": [round(float(v), 1) for v in frame.px(t)],
        "t": [int(v) for v in t],
        "top": frame.top,
        "bottom": frame.bottom,
        "lines": [
            [
                name,
                GREY if name in dotted else _colour(name),
                [float(f"{v:.4g}") for v in curve[value]],
            ]
            for name, curve in curves.items()
        ],
    }
    data = escape(json.dumps(hover, separators=(",", ":")), quote=True)
    return _svg(parts, width, height + below - 46, title, f' data-chart="{data}"')


def forest(rows: Sequence[Any], best: str, title: str, width: int = 420) -> str:
    """Paired differences to the best policy (rows of ``Runs.summary``) with their intervals.

    Text stands above each interval, so that the plot has the whole width on a narrow screen too.
    """
    ends = [v for r in rows for v in (r.difference_low, r.difference_high, r.difference) if v == v]
    low, high = min(0.0, *ends), max(0.0, *ends)
    pad = 0.03 * (high - low or 1.0)
    height = 26 + 38 * len(rows) + 44
    frame = Frame(12, width - 12, 26, height - 44, (low - pad, high + pad), (0, 1))
    zero = float(frame.px(np.array(0.0)))
    parts = [_x_axis(frame, f"regret minus that of {best}")]
    for i, row in enumerate(rows):
        y = 26 + 38 * i + 15
        told = number(row.difference, "+")
        if row.p == row.p:
            told += f" ({interval(row.difference_low, row.difference_high)}), {p_value(row.p)}"
        colour = _colour(row.policy)
        parts.append(
            f'<text x="12" y="{y}" class="strong">{escape(row.policy)}</text>'
            f'<text x="{width - 12}" y="{y}" text-anchor="end">{told}</text>'
        )
        parts.append(
            f'<path d="M{zero:.1f},{y + 4}v15" stroke="currentColor" stroke-dasharray="3 2"/>'
        )
        x = float(frame.px(np.array(row.difference)))
        if row.difference_low == row.difference_low:
            a, b = frame.px(np.array([row.difference_low, row.difference_high]))
            parts.append(
                f'<path d="M{a:.1f},{y + 7}v8M{b:.1f},{y + 7}v8M{a:.1f},{y + 11}H{b:.1f}" '
                f'stroke="{colour}" stroke-width="2" fill="none"/>'
            )
        parts.append(f'<circle cx="{x:.1f}" cy="{y + 11}" r="4" fill="{colour}"/>')
    return _svg(parts, width, height, title)


@dataclass(frozen=True)
class Entry:
    """A name in a legend, and its place."""

    name: str
    x: float
    row: int
    dotted: bool
    dashed: bool


def legend_entries(
    names: Mapping[str, Any], width: int, dotted: Sequence[str] = (), dashed: Sequence[str] = ()
) -> list[Entry]:
    """The names, as many in a row as fit."""
    found, x, row = list[Entry](), 12.0, 0
    for name in names:
        wide = 40 + LETTER * len(name)
        if found and x + wide > width:
            x, row = 12.0, row + 1
        found.append(Entry(name, x, row, name in dotted, name in dashed))
        x += wide
    return found


def legend_chart(names: Sequence[str], width: int = 380) -> str:
    """A legend of its own, for several charts."""
    entries = legend_entries(dict.fromkeys(names), width)
    height = 8 + 18 * (1 + entries[-1].row)
    return _svg([_legend(entries, 8)], width, height, "", ' data-legend=""')


def side_by_side(charts: Sequence[str], columns: int, legend: str = "") -> str:
    """Several charts of one size in one file, under their legend."""
    width, tall = (max(sizes) for sizes in zip(*map(chart_size, charts), strict=True))
    columns = min(columns, len(charts))
    wide, above = chart_size(legend) if legend else (0.0, 0.0)
    placed = [_at(0, 0, legend)] if legend else []
    for i, chart in enumerate(charts):
        row, column = divmod(i, columns)
        placed.append(_at(column * width, above + row * tall, chart))
    height = above + math.ceil(len(charts) / columns) * tall
    size = f'viewBox="0 0 {max(width * columns, wide):.0f} {height:.0f}"'
    style = 'style="background:#fff"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(placed)}</svg>'


def _at(x: float, y: float, chart: str) -> str:
    width, height = chart_size(chart)
    place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f"<svg {place} {chart.removeprefix('<svg ')}"


def chart_size(chart: str) -> tuple[float, float]:
    """Width and height of a chart."""
    width, height = chart.partition('viewBox="0 0 ')[2].partition('"')[0].split()
    return float(width), float(height)


def _svg(parts: Sequence[str], width: int, height: float, title: str, more: str = "") -> str:
    name = f'<text x="12" y="15" class="strong">{escape(title)}</text>' if title else ""
    label = f' role="img" aria-label="{escape(title, quote=True)}"' if title else ""
    style = "<style>text{fill:currentColor}.strong{font-weight:600}.tick{font-size:11px}</style>"
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="12"{label}{more}>{style}{name}'
        f"{''.join(parts)}</svg>"
    )


def _axes(frame: Frame, x_label: str, y_label: str) -> str:
    parts = [_x_axis(frame, x_label)]
    for value in _ticks(*frame.y, 5):
        y = float(frame.py(np.array(value)))
        parts.append(
            f'<path d="M{frame.left},{y:.1f}H{frame.right}" stroke="currentColor" opacity="0.12"/>'
            f'<text class="tick" x="{frame.left - 5}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_short(value)}</text>"
        )
    middle = (frame.top + frame.bottom) / 2
    parts.append(
        f'<text class="tick" transform="translate(11,{middle:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )
    return "".join(parts)


def _x_axis(frame: Frame, label: str) -> str:
    path = f"M{frame.left},{frame.bottom}H{frame.right}"
    parts = [f'<path d="{path}" stroke="currentColor" fill="none"/>']
    ticks = _powers(*frame.x) if frame.log_x else _ticks(*frame.x, 5)
    for value in ticks:
        x = float(frame.px(np.array(value)))
        parts.append(
            f'<path d="M{x:.1f},{frame.bottom}v4" stroke="currentColor"/><text class="tick" '
            f'x="{x:.1f}" y="{frame.bottom + 16}" text-anchor="middle">{_short(value)}</text>'
        )
    middle = (frame.left + frame.right) / 2
    parts.append(
        f'<text class="tick" x="{middle:.0f}" y="{frame.bottom + 32}" text-anchor="middle">'
        f"{escape(label)}{' (logarithmic)' if frame.log_x else ''}</text>"
    )
    return "".join(parts)


def _line(name: str, x: Floats, y: Floats, bound: bool, dashed: bool, phase: int) -> str:
    if bound:
        points = _points(x, y)
        return f'<polyline points="{points}" fill="none" stroke="{GREY}" stroke-dasharray="2 3"/>'
    style = _look(name)
    dash = ' stroke-dasharray="6 3"' if dashed or style["linestyle"] == "--" else ""
    line = f'<polyline points="{_points(x, y)}" fill="none" stroke-width="1.6" {{stroke}}{dash}/>'
    # a marker where the line has come a sixth further, shifted from line to line
    wanted = x[0] + (np.arange(6) + 0.5 + 0.08 * (phase % 6)) / 6.5 * (x[-1] - x[0])
    marks = "".join(
        f'<path d="{MARKERS[style["marker"]]}" transform="translate({a:.1f},{b:.1f})"/>'
        for a, b in zip(wanted, np.interp(wanted, x, y), strict=True)
    )
    colour = _colour(name)
    return line.format(stroke=f'stroke="{colour}"') + _marks(marks, style["marker"], colour)


def _marks(marks: str, marker: str, colour: str) -> str:
    paint = (
        f'fill="none" stroke="{colour}" stroke-width="1.6"'
        if marker in "X*"
        else f'fill="{colour}"'
    )
    return f"<g {paint}>{marks}</g>"


def _legend(entries: Sequence[Entry], top: float) -> str:
    parts = []
    for entry in entries:
        x, y = entry.x, top + 8 + 18 * entry.row
        if entry.dotted:
            key = f'<path d="M{x},{y}h22" stroke="{GREY}" stroke-dasharray="2 3"/>'
        else:
            style, colour = _look(entry.name), _colour(entry.name)
            dashed = entry.dashed or style["linestyle"] == "--"
            dash = ' stroke-dasharray="6 3"' if dashed else ""
            mark = f'<path d="{MARKERS[style["marker"]]}" transform="translate({x + 11},{y})"/>'
            key = f'<path d="M{x},{y}h22" stroke="{colour}" stroke-width="1.6"{dash}/>'
            key += _marks(mark, style["marker"], colour)
        parts.append(f'{key}<text x="{x + 27}" y="{y + 4}">{escape(entry.name)}</text>')
    return "".join(parts)


def _look(name: str) -> Look:
    """That of the policy, whatever is counted of it."""
    return look(name.partition(": ")[0])


def _colour(name: str) -> str:
    return css_colour(_look(name)["color"])


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _ticks(low: float, high: float, n: int) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    values = MaxNLocator(n, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(v) for v in values if low - 1e-9 <= v <= high * (1 + 1e-9) + 1e-12]


def _powers(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**k for k in range(first, last + 1)]


def _short(value: float) -> str:
    """A tick: 20k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= (size if size > 1e3 else 1e4):
            return f"{value / size:g}{letter}"
    return f"{value:,.10g}"
