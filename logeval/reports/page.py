"""A self-contained page: sections of text, figures and tables, and all of them as files beside it.

Figures are written as PDF and PNG and embedded as PNG; tables are written as CSV with full
precision and shown rounded. Text is escaped by the template, wherever it comes from.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from logeval.reports.figures import save_figure


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

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(kind="text", text=text)

    def notes(self, notes: list[str]) -> None:
        """Things to know before believing a number."""
        if notes:
            self._add(kind="notes", notes=notes)

    def code(self, caption: str, text: str) -> None:
        """A listing that is folded away at first."""
        self._add(kind="code", caption=caption, text=text)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names with their values."""
        self._add(kind="facts", facts={k: cell(v) for k, v in facts.items()})

    def figure(self, name: str, figure: Any, how_to_read: str) -> None:
        """A figure, with two sentences on how to read it."""
        save_figure(figure, self.folder / "figures" / f"{name}.pdf")
        png = save_figure(figure, self.folder / "figures" / f"{name}.png", dpi=160)
        data = base64.b64encode(png.read_bytes()).decode()
        self._add(kind="figure", name=name, data=data, text=how_to_read)

    def table(self, name: str, frame: pd.DataFrame, caption: str, **formats: str) -> None:
        """A table; ``formats`` say how the numbers of a column are shown, as ``p=".3f"``."""
        frame.to_csv(self.folder / "tables" / f"{name}.csv", index=False)
        numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
        specs = [
            formats.get(str(column), "d" if str(column).endswith("_id") else "") for column in frame
        ]
        rows = [
            [cell(value, spec) for value, spec in zip(row, specs, strict=True)]
            for row in frame.astype(object).to_numpy().tolist()
        ]
        columns = [str(column).replace("_", " ") for column in frame]
        self._add(
            kind="table", name=name, caption=caption, columns=columns, rows=rows, numeric=numeric
        )

    def write(self, title: str, subtitle: str) -> None:
        """Render the page."""
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("logeval.reports"), autoescape=True, trim_blocks=True
        )
        template = environment.get_template("report.html")
        html = template.render(title=title, subtitle=subtitle, sections=self.sections)
        (self.folder / "index.html").write_text(html, encoding="utf-8")

    def _add(self, **block: Any) -> None:
        self.sections[-1].blocks.append(block)


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
