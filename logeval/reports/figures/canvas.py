"""Making and saving figures without pyplot: no backend is chosen, no figure of the user closed."""

from __future__ import annotations

import contextlib
import functools
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.category import StrCategoryFormatter
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, NullFormatter

from logeval.errors import LogevalError
from logeval.storage import files
from logeval.storage.tables import figure_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes


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


def legend_below(ax: Axes, ncols: int = 2) -> None:
    """The legend below the axes, where it covers no curve."""
    ax.legend(frameon=False, ncols=ncols, loc="upper center", bbox_to_anchor=(0.5, -0.2))


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
