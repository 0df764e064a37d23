"""One look for all figures: a policy has the same colour and marker everywhere.

Colours are those of Okabe and Ito and three more, which stay apart for colour-blind readers;
markers tell the policies apart where colours fail. Eleven colours and ten markers: no two of the
first hundred policies have both in common.

Making and saving figures without pyplot: no backend is chosen, no figure of the user closed.

A figure of matplotlib as inline SVGs, one for each of its axes, in the colours of their page.

The page can then set them side by side or below each other, as its width allows, and show one of
many. They follow its light and dark, and know the values under the pointer: those of a chart over
searches are in its attribute ``data-chart``.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.category import StrCategoryFormatter
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, NullFormatter

from logeval.errors import LogevalError, unknown_names
from logeval.policies.registry import POLICIES
from logeval.running.names import parse_call
from logeval.storage import files
from logeval.storage.tables import figure_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes


COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#4B0092",
    "#7F7F7F", "#000000", "#B2182B",
)  # fmt: skip
SEARCHES, DAYS = "searches of a query", "day"
# axes of time: what is over them answers the pointer, in these words
TIMES = {SEARCHES: "# searches", DAYS: "day #"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


class Look(TypedDict):
    """Keyword arguments of ``Axes.plot``."""

    color: str
    marker: str
    linestyle: str


def look(policy: str) -> Look:
    """Colour, marker and line of a policy; variants of it differ in marker and line."""
    name, parameters = parse_call(policy)
    i = getattr(POLICIES.get(name), "FIGURE", zlib.crc32(name.encode()))
    variant = zlib.crc32(policy.encode()) if parameters else 0
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[(i + variant) % len(MARKERS)],
        "linestyle": "--" if parameters else "-",
    }


# sizes for a column of a two-column paper, and for slides
STYLES = {
    "paper": {"font.size": 8, "lines.linewidth": 1.2, "axes.linewidth": 0.6},
    "slides": {"font.size": 13, "lines.linewidth": 2.2, "axes.linewidth": 1.0},
}


@contextmanager
def styled(style: str) -> Iterator[None]:
    """Figures made within are drawn in this style, ``paper`` or ``slides``."""
    if style not in STYLES:
        raise unknown_names("style", [style], STYLES)
    from matplotlib import rc_context

    with rc_context(STYLES[style]):  # type: ignore[arg-type]
        yield


def new_axes(width: float = 4.2, height: float = 3.0) -> Axes:
    """Axes of a figure of their own, which needs no display."""
    return _new_figure(width, height, "constrained").subplots()


def new_panels(
    panels: int,
    width: float = 4.5,
    height: float = 3.4,
    columns: int = 3,
    layout: Literal["constrained"] | None = "constrained",
) -> tuple[Figure, list[Axes]]:
    """A figure with some panels of this size, up to ``columns`` in a row."""
    n_columns = min(columns, panels)
    n_rows = math.ceil(panels / n_columns)
    figure = _new_figure(width * n_columns, height * n_rows, layout)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat[panels:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:panels])


def _new_figure(
    width: float, height: float, layout: Literal["constrained"] | None = None
) -> Figure:
    """A figure that keeps what it measures text with, which takes long to make."""
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def legend_below(ax: Axes) -> None:
    """The legend below the axes, where it covers no curve."""
    ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def log_scale(axis: Any) -> None:
    """A logarithmic axis with plain numbers; formulas as 10^3 would take most of the drawing."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(NullFormatter())


def check_kind(out: Path | str) -> None:
    """Raise unless the ending of ``out`` is that of a kind of figure."""
    known = Figure().canvas.get_supported_filetypes()
    if Path(out).suffix.lstrip(".") not in known:
        raise LogevalError(f"{out}: cannot write this kind of figure; use .pdf, .png or .svg")


def literal_dollars(figure: Figure) -> None:
    """Show a text with ``$`` as it stands if it is no formula: names may hold anything."""
    for text in _texts(figure):
        if text.get_text().count("$") > 1 and not _is_formula(text.get_text()):
            text.set_parse_math(False)


def _texts(figure: Figure) -> Iterator[Text]:
    """What may hold names; to look at the numbers at all ticks would take longer than drawing."""
    yield from figure.texts
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
    for legend in filter(None, legends):
        yield from legend.get_texts()
    for ax in figure.axes:
        yield from (ax.title, *ax.texts)
        for axis in (ax.xaxis, ax.yaxis):
            yield axis.label
            if isinstance(axis.get_major_formatter(), FixedFormatter | StrCategoryFormatter):
                yield from axis.get_ticklabels()


@functools.lru_cache(10_000)  # parsing is slow
def _is_formula(text: str) -> bool:
    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def laid_out(figure: Any) -> Iterator[None]:
    """Lay the figure out now and not again while it is saved, with dollars that are no formula.

    A figure that lays itself out is drawn and laid out twice for every file.
    """
    literal_dollars(figure)
    engine = figure.get_layout_engine()
    if engine is None or not figure.axes:
        yield
        return
    engine.execute(figure)
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def drawn(figure: Any, kind: str, dpi: int = 150) -> bytes:
    """The figure as the bytes of a file, which are the same every time."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    found = io.BytesIO()  # matplotlib fails in many ways on a full disk
    # ids would be random; text stays text, in the font of the reader
    with rc_context({"svg.hashsalt": "logeval", "svg.fonttype": "none"}):
        figure.savefig(found, format=kind, dpi=dpi, metadata=metadata)
    return found.getvalue()


def save_figure(figure: Any, out: Path | str, dpi: int = 150) -> Path:
    """Write a figure, whole or not at all."""
    check_kind(out)
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with laid_out(figure):
        found = drawn(figure, out.suffix.lstrip("."), dpi)
    with files.replacing(out) as partial:
        partial.write_bytes(found)
    return out


def figure_beside(figure: Any, folder: Path | str, name: str) -> Path:
    """Write a figure into the folder of its table, whose manifest then lists it."""
    with figure_in(Path(folder), name) as path:
        save_figure(figure, path)
    return Path(folder) / name


LARGER, SMALLER = 1.4, 0.55  # than on paper, at most
PAGE = {
    "#000000": "currentColor",
    "#808080": "var(--soft, #808080)",
    "#FFFFFF": "var(--page, #fff)",
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
    if not lines or ax.get_xlabel() not in TIMES:
        return ""
    t = np.asarray(lines[0].get_xdata())
    lines = [line for line in lines if np.array_equal(line.get_xdata(), t)]
    x = ax.transData.transform(np.column_stack([t, np.ones(len(t))]))[:, 0]
    top, bottom = (figure.bbox.height - y for y in (ax.bbox.y1, ax.bbox.y0))
    data = {
        "x": _points(figure, x).round(1).tolist(),
        "t": [float(f"{value:.4g}") if value < 1e3 else value for value in t.tolist()],
        "unit": TIMES[ax.get_xlabel()],
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
