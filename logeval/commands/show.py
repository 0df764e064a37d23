"""What commands print: tables for people, JSON and CSV for programs, LaTeX for a paper."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.errors import LogevalError, visible
from logeval.running.console import unguarded
from logeval.running.words import cell
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    import pandas as pd  # not before a command runs: --help stays quick

    from logeval.facts import Answer, Fact

FOLDED = 14  # a column of texts may be folded down to this, and is not below
GAP = 2
WIDTH = 80  # where the terminal does not say otherwise
FORMATS = {"as_json": "--json", "as_csv": "--csv", "as_latex": "--latex"}


def _one_format(ctx: typer.Context, param: typer.CallbackParam, value: bool) -> bool:
    given = [option for name, option in FORMATS.items() if ctx.params.get(name)]
    if value and given:
        raise LogevalError(f"{given[0]} and {FORMATS[str(param.name)]}: only one can be printed")
    return value


Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.", callback=_one_format)]
Csv = Annotated[bool, typer.Option("--csv", help="CSV, for programs.", callback=_one_format)]
Latex = Annotated[
    bool, typer.Option("--latex", help="LaTeX (booktabs), for a paper.", callback=_one_format)
]
Details = Annotated[
    bool, typer.Option("--details", help="The facts behind it, and the other tables, too.")
]
Rows = Iterable[Sequence[object]]


def wrapped(text: str) -> str:
    """A sentence in lines of 80 columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def print_table(title: str, columns: Sequence[str], rows: Rows, keys: int = 1) -> None:
    """Print a table."""
    if title:
        print(wrapped(title))
    print(f"{table_text(columns, rows, keys)}\n")


def print_answer(
    answer: Answer,
    title: str,
    columns: Sequence[str],
    rows: Rows,
    details: bool = True,
    keys: int = 1,
) -> None:
    """The conclusion, one table, and whether to believe it; with details the facts behind it."""
    from logeval.reports import words

    print(f"{wrapped(words.conclusion(answer))}\n")
    print_table(title, columns, rows, keys)
    for line in words.rest(answer):
        print(wrapped(line))
    if not details:
        print("More  --details")
        return
    print()
    print_facts(answer.every)


def print_notes(notes: Iterable[str]) -> None:
    """Remarks, one below the other."""
    for note in notes:
        print(wrapped(f"- {note}"))


def print_facts(facts: Sequence[Fact]) -> None:
    """The facts, the worst first: what, its value, what it is held against, what to do."""
    from logeval.reports.answer import FACTS, facts_rows

    print_table("", FACTS, facts_rows(facts))


def print_frame(title: str, frame: pd.DataFrame, keys: int = 1) -> None:
    """Print a data frame."""
    print_table(title, [*map(str, frame)], frame.astype(object).to_numpy().tolist(), keys)


def table_text(columns: Sequence[str], rows: Rows, keys: int = 1) -> str:
    """A table: numbers to the right and never broken, long texts folded.

    Where that is too wide, it is continued below, with the first ``keys`` columns again.
    """
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    cells = [[visible(cell(value)) for value in row] for row in rows]
    every = [_Column(name, [row[i] for row in cells]) for i, name in enumerate(columns)]
    blocks = [every[:keys]]
    for column in every[keys:]:
        if sum(c.least + GAP for c in (*blocks[-1], column)) > limit + GAP:
            blocks.append(every[:keys])
        blocks[-1] = [*blocks[-1], column]
    return "\n\n".join(_block(block, limit) for block in blocks)


class _Column:
    """One column of a table: its texts, and how wide it would and must be."""

    def __init__(self, name: str, cells: list[str]) -> None:
        from rich.cells import cell_len

        self.head, self.cells = name.split("\n"), cells
        self.numeric = all(text[:1] in "+-0123456789.<[" for text in cells)
        self.width = max(map(cell_len, [*self.head, *cells]))
        words = (word for text in [*self.head, *cells] for word in text.split())
        folded = min(max(map(cell_len, words), default=0), WIDTH // 2 - 1)
        self.least = self.width if self.numeric else max(folded, min(self.width, FOLDED))


def _block(columns: Sequence[_Column], limit: int) -> str:
    """Some columns side by side; what room there is goes to those that are folded."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    room = limit + GAP - sum(c.least + GAP for c in columns)
    share = min(1.0, max(room, 0) / max(sum(c.width - c.least for c in columns), 1))
    tall = max(len(c.head) for c in columns)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="")
    for c in columns:
        head = "\n".join([*([""] * (tall - len(c.head))), *c.head])
        width = c.least + int(share * (c.width - c.least))
        justify: Any = "right" if c.numeric else "left"
        table.add_column(Text(visible(head, "\n")), width=width, justify=justify, overflow="fold")
    for row in zip(*(c.cells for c in columns), strict=True):
        table.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=9999, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


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


MATHS = {"<": "$<$", ">": "$>$", "±": r"$\pm$", "∞": r"$\infty$", "inf": r"$\infty$", "-": "$-$"}
SIGN = re.compile(r"[<>±∞]|(?<![\w.)-])-(?=[0-9.]|inf\b)|\binf\b")  # no hyphen


def latex_table(
    title: str, columns: Sequence[str], rows: Rows, bold: Collection[tuple[int, int]] = ()
) -> str:
    r"""A ``tabular`` with booktabs' rules; ``bold`` are the (row, column) of what is best.

    The title is a comment: captions are the author's. Needs \usepackage{booktabs}.
    """
    import pandas as pd

    cells = [[" ".join(cell(value).split()) for value in row] for row in rows]
    frame = pd.DataFrame(cells, columns=[*columns])
    numeric = [all(re.match(r"[-+<]?[0-9∞]|[-+]?inf|$", x) for x in frame[c]) for c in columns]
    styled = frame.style.hide(axis="index").format(_in_maths, escape="latex")
    styled = styled.format_index(_in_maths, escape="latex", axis="columns")
    for r, c in bold:
        styled = styled.map(lambda _: "textbf:--rwrap;", subset=pd.IndexSlice[r, columns[c]])
    form = "".join("r" if one else "l" for one in numeric)
    text = styled.to_latex(hrules=True, column_format=form)
    return f"% {' '.join(title.split())}\n{text.rstrip()}"


def _in_maths(text: object) -> str:
    return SIGN.sub(lambda found: MATHS[found[0]], str(text))
