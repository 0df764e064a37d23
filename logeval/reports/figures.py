"""Making and saving figures without pyplot: no backend is chosen, no figure of the user closed."""

from __future__ import annotations

import contextlib
import functools
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text

from logeval.errors import LogevalError
from logeval.storage import files
from logeval.storage.manifests import figure_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes


def new_axes(width: float = 4.2, height: float = 3.0) -> Axes:
    """Axes of a figure of their own, which needs no display."""
    return Figure(figsize=(width, height), layout="constrained").subplots()


def new_panels(panels: int) -> tuple[Figure, list[Axes]]:
    """A figure with some panels, up to three in a row."""
    n_columns = min(3, panels)
    n_rows = math.ceil(panels / n_columns)
    width, height = (5, 3.6) if panels == 1 else (4.5 * n_columns, 3.4 * n_rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat[panels:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:panels])


def legend_below(ax: Axes, ncols: int = 2) -> None:
    """The legend below the axes, where it covers no curve."""
    ax.legend(
        frameon=False, fontsize="small", ncols=ncols, loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
    )  # fmt: skip


def check_kind(out: Path | str) -> None:
    """Raise unless the ending of ``out`` is that of a kind of figure."""
    known = Figure().canvas.get_supported_filetypes()
    if Path(out).suffix.lstrip(".") not in known:
        raise LogevalError(f"{out}: cannot write this kind of figure; use .pdf, .png or .svg")


def literal_dollars(figure: Figure) -> None:
    """Show a text with ``$`` as it stands if it is no formula: names may hold anything."""
    for text in figure.findobj(Text):
        if (
            isinstance(text, Text)
            and text.get_text().count("$") > 1
            and not _is_formula(text.get_text())
        ):
            text.set_parse_math(False)


@functools.lru_cache(10_000)  # tick labels are the same in every figure, and parsing them is slow
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


def save_figure(figure: Any, out: Path | str, dpi: int = 150) -> Path:
    """Write a figure, whole or not at all, and the same bytes every time."""
    check_kind(out)
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    kind = out.suffix.lstrip(".")
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    drawn = io.BytesIO()  # matplotlib fails in many ways on a full disk
    with laid_out(figure), rc_context({"svg.hashsalt": "logeval"}):  # else ids are random
        figure.savefig(drawn, format=kind, dpi=dpi, metadata=metadata)
    with files.replacing(out) as partial:
        partial.write_bytes(drawn.getbuffer())
    return out


def figure_beside(ax: Any, folder: Path | str, name: str) -> Path:
    """Write the figure of some axes into the folder of its table, whose manifest then lists it."""
    with figure_in(Path(folder), name) as path:
        return save_figure(ax.figure, path)
