"""A figure of matplotlib as inline SVGs, one for each of its axes, in the colours of their page.

The page can then set them side by side or below each other, as its width allows, and show one of
many. They follow its light and dark, and know the values under the pointer: those of a chart over
searches are in its attribute ``data-chart``.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_hex

from logeval.reports.figures.style import CELLS, COLOURS, SEARCHES

LARGER, SMALLER = 1.2, 0.7  # than on paper, at most
PAGE = {
    "#000000": "currentColor",
    "#808080": "var(--soft, #808080)",
    "#FFFFFF": "var(--page, #fff)",
    **{colour: f"var(--{name}, {colour})" for name, colour in CELLS.items()},
}


class Inline(NamedTuple):
    """What stands above all panels (or nothing), and the panels."""

    legend: str
    panels: list[str]


def inline(figure: Any, svg: str, prefix: str) -> Inline:
    """The panels of a ``laid_out`` figure that is drawn as ``svg``; ``prefix`` is for their ids."""
    text = _of_the_page(svg, prefix)
    axes = [ax for ax in figure.axes if ax.get_visible()]
    drawn = re.findall(r'^  <g id="[^"]*axes_\d+">.*?^  </g>$', text, re.DOTALL | re.MULTILINE)
    if figure.texts or len(drawn) != len(axes):  # a text of all of them would be lost
        whole = re.search(r"<g .*(?=</svg>)", text, re.DOTALL)
        return Inline("", [_svg(figure, figure.bbox, whole[0] if whole else "")])
    clips = dict(re.findall(r'(<clipPath id="([^"]*)">.*?</clipPath>)', text, re.DOTALL))
    clips = {name: clip for clip, name in clips.items()}
    panels = []
    for ax, part in zip(axes, drawn, strict=True):
        mine = "".join(clips[name] for name in sorted(set(re.findall(r"url\(#([^)]*)\)", part))))
        box = ax.get_tightbbox().padded(3) if len(axes) > 1 else figure.bbox
        title = escape(ax.get_title(), quote=True)
        label = f' role="img" aria-label="{title}"' if title else ""
        panels.append(_svg(figure, box, f"<defs>{mine}</defs>{part}", label + _values(figure, ax)))
    if not figure.legends:
        return Inline("", panels)
    key = re.search(r'^  <g id="[^"]*legend_\d+">.*?^  </g>$', text, re.DOTALL | re.MULTILINE)
    box = figure.legends[0].get_window_extent()
    return Inline(_svg(figure, box, key[0] if key else ""), panels)


def css_colour(colour: str) -> str:
    """The colour as the page knows it, ``var(--c0, #0072B2)``: in the dark it has a lighter one."""
    colour = to_hex(colour).upper()
    if colour in PAGE:
        return PAGE[colour]
    return f"var(--c{COLOURS.index(colour)}, {colour})" if colour in COLOURS else colour


def _of_the_page(svg: str, prefix: str) -> str:
    """In its font and colours, with ids that no other figure has."""
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.S)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px system-ui, sans-serif", text)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda match: css_colour(match[0]), text)


def _svg(figure: Any, box: Any, content: str, more: str = "") -> str:
    """A part of the figure, between ``SMALLER`` and ``LARGER``; in points, downwards."""
    x, y, width, height = _points(figure, (box.x0, figure.bbox.height - box.y1, *box.size))
    place = f'viewBox="{x:.1f} {y:.1f} {width:.1f} {height:.1f}"'
    size = f"min-width:{SMALLER * width:.0f}pt;max-width:{LARGER * width:.0f}pt"
    look = f'class="plot" stroke-linejoin="round" style="{size}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {place} {look}{more}>{content}</svg>'


def _points(figure: Any, pixels: Any) -> np.ndarray:
    return np.asarray(pixels, dtype=float) * 72 / figure.dpi


def _values(figure: Any, ax: Any) -> str:
    """The lines over searches, for the script that shows them under the pointer."""
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    if not lines or ax.get_xlabel() != SEARCHES:
        return ""
    t = np.asarray(lines[0].get_xdata())
    lines = [line for line in lines if np.array_equal(line.get_xdata(), t)]
    x = ax.transData.transform(np.column_stack([t, np.ones(len(t))]))[:, 0]
    top, bottom = (figure.bbox.height - y for y in (ax.bbox.y1, ax.bbox.y0))
    data = {
        "x": _points(figure, x).round(1).tolist(),
        "t": t.tolist(),
        "top": round(float(_points(figure, top)), 1),
        "bottom": round(float(_points(figure, bottom)), 1),
        "lines": [
            [
                line.get_label(),
                css_colour(line.get_color()),
                [float(f"{value:.4g}") for value in line.get_ydata()],
            ]
            for line in lines
        ],
    }
    found = escape(json.dumps(data, separators=(",", ":")), quote=True)
    return f' data-chart="{found}"'
