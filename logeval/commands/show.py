"""Tables for people, on stdout; they fit 80 columns where the terminal does not say otherwise."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from logeval.errors import visible
from logeval.running.console import unguarded
from logeval.running.words import cell
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    import pandas as pd  # not before a command runs: --help stays quick

WIDTH = 80
FOLDED = 14  # a column of texts may be folded down to this, and is not below
GAP = "  "


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], keys: int = 1
) -> None:
    """Print a table."""
    print(f"{wrapped(title)}\n{table_text(columns, rows, keys)}\n")


def wrapped(text: str) -> str:
    """A sentence in lines of 80 columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[object]], keys: int = 1) -> str:
    """A table: numbers to the right and never broken, long texts folded between words.

    Where that is not enough, it is continued below, with the first ``keys`` columns again.
    """
    cells = [[visible(cell(value)) for value in row] for row in rows]  # before they are measured
    every = [_Column(name, [row[i] for row in cells]) for i, name in enumerate(columns)]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    blocks = [every[:keys]]
    for column in every[keys:]:
        if sum(c.folded + len(GAP) for c in [*blocks[-1], column]) > limit + len(GAP):
            blocks.append(every[:keys])
        blocks[-1] = [*blocks[-1], column]
    return "\n\n".join(_block(block, limit) for block in blocks)


class _Column:
    """One column of a table, and how wide it is: unfolded, and as narrow as it may be."""

    def __init__(self, name: str, cells: list[str]) -> None:
        self.head, self.cells = name.split("\n"), cells
        self.numeric = all(text[:1] in "+-0123456789.<[" for text in cells)
        self.width = max(map(cell_len, [*self.head, *cells]))
        words = [part for text in cells for part in _parts(text)]
        longest = min(max(map(cell_len, [*self.head, *words])), WIDTH // 2 - 1)
        self.folded = self.width if self.numeric else max(longest, min(self.width, FOLDED))

    def lines(self, text: str, width: int) -> list[str]:
        """A cell in lines of a width: folded between words, and within one only if it is longer."""
        indent = text[: len(text) - len(text.lstrip())]
        lines, width = [""], width - cell_len(indent)
        for word in re.findall(r"\S+", text):
            short = cell_len(word) <= width
            for i, part in enumerate([word] if short else _parts(word)):
                blank = " " if i == 0 and lines[-1] else ""
                if lines[-1] and cell_len(lines[-1] + blank + part) > width:
                    lines.append("")
                    blank = ""
                while cell_len(part) > width:
                    lines[-1], part = part[:width], part[width:]
                    lines.append("")
                lines[-1] += blank + part
        return [indent + line for line in lines]

    def padded(self, text: str, width: int) -> str:
        """Numbers to the right."""
        fill = " " * (width - cell_len(text))
        return fill + text if self.numeric else text + fill


def _parts(text: str) -> list[str]:
    """Where a line may end: at a blank, and within a word after the | between choices."""
    return re.findall(r"[^\s|]*\||[^\s|]+", text)


def _block(columns: Sequence[_Column], limit: int) -> str:
    """Some columns side by side; what room there is goes to those that are folded."""
    room = limit - sum(c.folded + len(GAP) for c in columns) + len(GAP)
    wanted = sum(c.width - c.folded for c in columns)
    share = min(1.0, max(room, 0) / wanted) if wanted else 0.0
    widths = [c.folded + int(share * (c.width - c.folded)) for c in columns]
    tall = max(len(c.head) for c in columns)
    rows = [[[""] * (tall - len(c.head)) + c.head for c in columns]]
    for i in range(len(columns[0].cells)):
        rows.append([c.lines(c.cells[i], w) for c, w in zip(columns, widths, strict=True)])
    text = []
    for row in rows:
        for parts in zip_longest(*row, fillvalue=""):
            cells = zip(columns, parts, widths, strict=True)
            text.append(GAP.join(c.padded(part, width) for c, part, width in cells).rstrip())
    return "\n".join(text)


def print_frame(title: str, frame: pd.DataFrame, keys: int = 1) -> None:
    """Print a data frame."""
    names, rows = [str(c) for c in frame.columns], frame.astype(object).to_numpy().tolist()
    print_table(title, names, rows, keys)


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
