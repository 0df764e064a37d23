"""Tables for people, on stdout; they fit 80 columns where the terminal does not say otherwise."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd  # not before a command runs: --help stays quick

WIDTH = 80


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table."""
    print(f"{wrapped(title)}\n{table_text(columns, rows)}\n")


def wrapped(text: str) -> str:
    """A sentence in lines of 80 columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: numbers to the right and never broken, long texts folded where it is too wide."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    numeric, widths = [], []
    for i, name in enumerate(columns):
        texts = [text for row in rows if isinstance(text := row[i], str)]
        numeric.append(all(text[:1] in "+-0123456789.<[" for text in texts))
        cells = [*name.split("\n"), *(_cell(row[i]) for row in rows)]
        widths.append(max(map(len, cells)) + 2)
    kept = [n or w <= 20 for n, w in zip(numeric, widths, strict=True)]
    fit = sum(w for w, k in zip(widths, kept, strict=True) if k) <= WIDTH
    for name, right, whole in zip(columns, numeric, kept, strict=True):
        justify: Literal["right", "left"] = "right" if right else "left"
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=whole and fit)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    text = io.StringIO()
    width = None if sys.stdout.isatty() else WIDTH
    Console(file=text, width=width or Console().width, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def print_frame(title: str, frame: pd.DataFrame) -> None:
    """Print a data frame."""
    print_table(title, [str(c) for c in frame.columns], frame.astype(object).to_numpy().tolist())


def _cell(value: object) -> str:
    if value is None or type(value).__name__ == "NAType":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """A number with digits by its size: 4 of them, and all before the point.

    >>> [number(x) for x in (123456.7, 1234.5, 3.14159, 0.0012345, -0.5, 7.0)]
    ['123,457', '1,234', '3.142', '0.001234', '-0.5', '7']
    """
    if value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def interval(value: float, low: float, high: float, sign: str = "") -> str:
    """``171.2 [165.1, 177.3]``, all with as many places as the value needs by its size."""
    if value != value:
        return ""
    size = max(abs(value), abs(high - low) if high == high else 0.0)
    places = 0 if size >= 1000 else 1 if size >= 10 or not size else 2 if size >= 1 else 4
    shown = f"{value:{sign},.{places}f}"
    return shown if low != low else f"{shown} [{low:,.{places}f}, {high:,.{places}f}]"


def p_value(p: float) -> str:
    """Four places; smaller ones are not told apart."""
    return "" if p != p else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def print_for_programs(frame: pd.DataFrame, as_json: bool, as_csv: bool, **more: Any) -> bool:
    """Print a table as JSON, with what else there is, or as CSV; False if neither is wanted."""
    if as_json:
        print(json.dumps({**more, "rows": json.loads(frame.to_json(orient="records"))}))
    elif as_csv:
        print(frame.to_csv(index=False), end="")
    return as_json or as_csv
