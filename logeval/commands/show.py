"""Tables for people, on stdout; they fit 80 columns where the terminal does not say otherwise."""

from __future__ import annotations

import io
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from logeval.errors import visible
from logeval.running.terminal import unguarded
from logeval.running.words import cell
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    import pandas as pd  # not before a command runs: --help stays quick

WIDTH = 80
FOLDED = 18  # a column of texts may be folded down to this, and is not below


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table."""
    print(f"{wrapped(title)}\n{table_text(columns, rows)}\n")


def wrapped(text: str) -> str:
    """A sentence in lines of 80 columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: numbers to the right and never broken, long texts folded where it is too wide.

    Where that is not enough, it is continued below, with the first column again.
    """
    cells = [[visible(cell(value)) for value in row] for row in rows]  # before they are measured
    widths = [
        max(map(len, [*name.split("\n"), *(row[i] for row in cells)])) + 2
        for i, name in enumerate(columns)
    ]
    numeric = [_is_numeric([row[i] for row in cells]) for i in range(len(columns))]
    needed = [w if n else min(w, FOLDED) for w, n in zip(widths, numeric, strict=True)]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    blocks: list[list[int]] = [[0]]
    for i in range(1, len(columns)):
        if sum(needed[j] for j in blocks[-1]) + needed[i] > limit + 2:
            blocks.append([0])
        blocks[-1].append(i)
    return "\n\n".join(
        _block([columns[i] for i in block], [[row[i] for i in block] for row in cells],
               [numeric[i] for i in block], limit)
        for block in blocks
    )  # fmt: skip


def _is_numeric(texts: Sequence[str]) -> bool:
    return all(text[:1] in "+-0123456789.<[" for text in texts)


def _block(
    columns: Sequence[str], rows: list[list[str]], numeric: Sequence[bool], limit: int
) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for i, (name, right) in enumerate(zip(columns, numeric, strict=True)):
        short = all(len(row[i]) + 2 <= FOLDED for row in rows)
        justify: Literal["right", "left"] = "right" if right else "left"
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=right or short)
    for row in rows:
        table.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=limit, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def print_frame(title: str, frame: pd.DataFrame) -> None:
    """Print a data frame."""
    print_table(title, [str(c) for c in frame.columns], frame.astype(object).to_numpy().tolist())


def print_for_programs(
    frame: pd.DataFrame, as_json: bool, as_csv: bool = False, **more: Any
) -> bool:
    """Print a table as JSON, with what else there is, or as CSV; False if neither is wanted."""
    if as_json:
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
        print(json.dumps({**more, "rows": rows}, default=str))
    elif as_csv:
        print(csv_of(frame), end="", file=unguarded(sys.stdout))
    return as_json or as_csv
