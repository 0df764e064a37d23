"""Tables for people, on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import pandas as pd


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers are set to the right, floats with four digits."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        numeric = all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def print_frame(title: str, frame: pd.DataFrame) -> None:
    """Print a data frame."""
    print_table(title, [str(c) for c in frame.columns], frame.astype(object).to_numpy().tolist())


def _cell(value: object) -> str:
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
