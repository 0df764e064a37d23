"""A self-contained page: sections of text, figures and tables, and all of them as files beside it.

Charts are inline SVG; tables are shown rounded, with at most ``WIDEST`` columns, and the rest in a
fold-out. Every figure and table can be saved from the page itself (as a data: URI), so one file is
complete; the same files are beside it. Text is escaped by the template, wherever it comes from.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from logeval.reports.charts import side_by_side
from logeval.reports.figures import laid_out, save_figure
from logeval.reports.inline import inline_svg
from logeval.storage.spreadsheets import csv_of

WIDEST = 7  # columns that fit a page of 1280 pixels
KINDS = {".csv": "text/csv", ".pdf": "application/pdf", ".svg": "image/svg+xml"}


@dataclass
class Section:
    """A heading and what follows it: blocks with a ``kind`` that the template knows."""

    title: str
    blocks: list[dict[str, Any]] = field(default_factory=list)


class Page:
    """Collects sections; ``write`` renders them into ``index.html``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        (folder / "figures").mkdir(parents=True)
        (folder / "tables").mkdir()

    def section(self, title: str) -> None:
        """Start a section."""
        self.sections.append(Section(title))

    def heading(self, text: str) -> None:
        """A heading within a section."""
        self._add(kind="heading", text=text)

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(kind="text", text=text)

    def verdict(self, answer: str, findings: Sequence[str], limits: Sequence[str]) -> None:
        """The answer, what it rests on, and what limits it."""
        self._add(kind="verdict", answer=answer, findings=findings, limits=limits)

    def notes(self, notes: Sequence[str]) -> None:
        """Things to know before believing a number."""
        if notes:
            self._add(kind="notes", notes=list(notes))

    def code(self, caption: str, text: str) -> None:
        """A listing that is folded away at first."""
        self._add(kind="code", caption=caption, text=text)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names with their values."""
        self._add(kind="facts", facts={k: cell(v) for k, v in facts.items()})

    def figure(self, name: str, figure: Any, how_to_read: str) -> None:
        """A figure of matplotlib, with two sentences on how to read it."""
        files = [self.folder / "figures" / f"{name}{kind}" for kind in (".svg", ".pdf")]
        with laid_out(figure):
            for file in files:
                save_figure(figure, file)
            svg = inline_svg(figure, name)
        panels = [{"svg": svg, "query": ""}]
        self._add(kind="figure", name=name, panels=panels, text=how_to_read, files=_links(files))

    def charts(
        self,
        name: str,
        charts: Sequence[str] | Mapping[str, str],
        how_to_read: str,
        *,
        pdf: Any = None,
        legend: str = "",
    ) -> None:
        """Charts of ``reports.charts`` beside each other; by query, the reader can choose one.

        ``pdf`` is the same drawn by matplotlib, for papers.
        """
        by_query = isinstance(charts, Mapping)
        queries = list(charts) if isinstance(charts, Mapping) else [""] * len(charts)
        drawn = list(charts.values()) if isinstance(charts, Mapping) else list(charts)
        panels = [{"svg": svg, "query": q} for q, svg in zip(queries, drawn, strict=True)]
        files = [self.folder / "figures" / f"{name}.svg"]
        columns = 1 if len(panels) == 1 else 2 if not by_query else 4
        files[0].write_text(side_by_side(drawn, columns, legend), encoding="utf-8")
        if pdf is not None:
            files.append(save_figure(pdf, self.folder / "figures" / f"{name}.pdf"))
        self._add(
            kind="figure", name=name, panels=panels, legend=legend, text=how_to_read,
            files=_links(files), queries=queries if by_query else [],
        )  # fmt: skip

    def table(
        self,
        name: str,
        frame: pd.DataFrame,
        caption: str,
        *,
        shown: Mapping[str, Sequence[tuple[str, Any]]] | None = None,
        query: str = "",
        folded: bool = False,
        rows: int | None = None,
        **formats: str,
    ) -> None:
        """A table; ``formats`` say how the numbers of a column are shown, as ``p=".3f"``.

        ``shown`` are columns to show instead, by title: for each row its text, and the value by
        which it is sorted. The whole frame is in the CSV, and folded away below. With more than
        ``WIDEST`` columns the first are shown. ``query`` is the column that the picker looks at,
        ``folded`` hides all of it at first, and only the first ``rows`` are shown.
        """
        file = self.folder / "tables" / f"{name}.csv"
        file.write_text(csv_of(frame), encoding="utf-8")
        frame = frame if rows is None else frame.head(rows)
        columns = {str(c).replace("_", " "): _cells(frame[c], formats) for c in frame}
        first = dict(shown) if shown is not None else dict(list(columns.items())[:WIDEST])
        fold = []
        if shown is not None or len(columns) > WIDEST:
            key, *rest = columns
            pieces = [rest[i : i + WIDEST - 1] for i in range(0, len(rest), WIDEST - 1)]
            fold = [_grid({c: columns[c] for c in (key, *piece)}) for piece in pieces]
        queries = [str(q) for q in frame[query]] if query else []
        self._add(
            kind="table", name=name, caption=caption, grid=_grid(first, queries), fold=fold,
            folded=folded, files=_links([file]),
        )  # fmt: skip

    def write(self, title: str, subtitle: str, footer: str = "") -> None:
        """Render the page."""
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("logeval.reports"), autoescape=True, trim_blocks=True
        )
        template = environment.get_template("report.html")
        html = template.render(
            title=title, subtitle=subtitle, sections=self.sections, footer=footer
        )
        (self.folder / "index.html").write_text(html, encoding="utf-8")

    def _add(self, **block: Any) -> None:
        self.sections[-1].blocks.append(block)


def _links(files: Sequence[Path]) -> list[dict[str, str]]:
    """What to save from the page: the files themselves, as data: URIs."""
    return [
        {
            "name": file.name,
            "kind": file.suffix.lstrip(".").upper(),
            "data": f"data:{KINDS[file.suffix]};base64,"
            + base64.b64encode(file.read_bytes()).decode(),
        }
        for file in files
    ]


def _cells(column: pd.Series, formats: Mapping[str, str]) -> list[tuple[str, Any]]:
    name = str(column.name)
    spec = formats.get(name, "d" if name.endswith("_id") else "")
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    values = column.astype(object).tolist()
    return [(cell(v, spec), v if numeric and cell(v) else None) for v in values]


def _grid(
    columns: Mapping[str, Sequence[tuple[str, Any]]], queries: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns as the template wants them: rows of cells, and which columns are numbers."""
    rows = list(zip(*columns.values(), strict=True))
    numeric = [any(key is not None for _, key in cells) for cells in columns.values()]
    return {
        "columns": list(columns),
        "numeric": numeric,
        "rows": [
            {"cells": row, "query": queries[i] if queries else ""} for i, row in enumerate(rows)
        ],
    }


def cell(value: object, spec: str = "") -> str:
    """A value as it is shown; nothing for what is missing."""
    if value is None or value is pd.NA or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cell(v) for v in value)
    if spec:
        return format(value, spec)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
