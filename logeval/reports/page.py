"""What a report is about: runs, and the models and logs that they were made from.

A self-contained page: sections of text, figures and tables, and all of them as files beside it.

Figures are inline SVG; tables are shown rounded, with at most ``WIDEST`` columns, and the rest in a
fold-out. Every figure and table can be saved from the page itself (as a data: URI), so one file is
complete; the same files are beside it. Text is escaped by the template, wherever it comes from.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from logeval.clicks.collection import FittedModels, read_models
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.log.describe import Description
from logeval.log.log import Log, load
from logeval.log.names import Names, shortened
from logeval.replay.estimates import Estimates
from logeval.reports.figures.canvas import drawn, inline, laid_out
from logeval.reports.glossary import GLOSSARY, anchor, docs_page
from logeval.reports.verdict import Verdict
from logeval.running.words import cell
from logeval.storage import tables
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    from logeval.reports.report import Report


@dataclass(frozen=True)
class Content:
    """Everything that the sections of a report may look at."""

    runs: list[Runs]
    models: dict[str, FittedModels] = field(default_factory=dict)  # by folder
    made_with: list[str] = field(default_factory=list)  # folder of the models of each runs, or ""
    logs: dict[str, Log] = field(default_factory=dict)  # by folder
    recipe: Path | None = None
    replay: Estimates | None = None  # what replay estimated from the log itself
    notes: list[str] = field(default_factory=list)  # what could not be found any more

    def suffix(self, i: int) -> str:
        """What tells the files of the i-th runs from those of others."""
        return "" if len(self.runs) == 1 else f"-{i + 1}"

    def where(self, i: int) -> str:
        """What tells the headings of the i-th runs from those of others."""
        return "" if len(self.runs) == 1 else f": {self.runs[i].folder}"

    @cached_property
    def described(self) -> dict[str, Description]:
        """The logs at a glance, by folder."""
        return {folder: log.describe() for folder, log in self.logs.items() if log.holds == "serps"}

    @cached_property
    def names(self) -> dict[str, str]:
        """All queries of the page, by the names that they have everywhere on it."""
        queries = {str(q) for runs in self.runs for q in runs.table()["query"].unique()}
        for models in self.models.values():
            queries |= {str(q) for fitted in models.fitted.values() for q in fitted.index}
        for log in self.described.values():
            queries |= set(map(str, log.top_queries["query"]))
        if self.replay is not None:
            queries |= set(map(str, self.replay.table["query"].dropna()))
        return self.known.titles(queries, width=None)

    @cached_property
    def known(self) -> Names:
        """The names of queries and items that the results know."""
        found = Names()
        every: list[Any] = [*self.runs, *self.models.values(), *self.described.values()]
        for one in every:
            found |= one.names
        return found if self.replay is None else found | Names.of(self.replay.manifest)

    def chosen(self, i: int) -> list[str]:
        """Why the i-th runs have these simulators, where that was not said by the user."""
        models = self.models.get(self.made_with[i]) if self.made_with else None
        return [] if models is None else list(models.manifest.get("chosen", []))


def content_of(asked: Report) -> Content:
    """The runs with their models and logs: those given, or those that the manifests name.

    A folder that the manifests name and that is gone is left out, with a note. Models that are
    not those of the runs are refused.
    """
    models, log = asked.models, asked.log
    found = Content(
        [Runs.load(folder).only(asked.policies, asked.n_runs) for folder in asked.folders],
        recipe=Path(asked.recipe) if asked.recipe else None,
        replay=None if asked.replay is None else Estimates.read(asked.replay),
    )
    for folder in asked.folders:
        manifest = tables.read_manifest(folder)
        named = models if models is not None else manifest.get("models_folder")
        found.made_with.append(str(named or ""))
        if named is None:
            continue
        if models is None and not tables.there_is(named):
            found.notes.append(f"the models of {folder} are no longer in {named}")
            continue
        if str(named) not in found.models:
            found.models[str(named)] = read_models(named)
        refuse_other_models(folder, manifest, str(named), found.models[str(named)])
    logs = [str(log)] if log is not None else []
    if log is None:
        logs = [str(m.manifest.get("log_folder") or "") for m in found.models.values()]
    for named in dict.fromkeys(filter(None, logs)):
        if log is not None or tables.there_is(named):
            found.logs[named] = load(named)
        else:
            found.notes.append(f"the log is no longer in {named}")
    refuse_other_logs(asked, found)
    return found


def refuse_other_logs(asked: Report, found: Content) -> None:
    """Raise if the log, or the estimates from one, are not of the log that the models are of."""
    fitted = {log for models in found.models.values() for log in _logs(models.manifest)}
    given = {} if asked.log is None else {str(asked.log): {load(asked.log).identity}}
    if found.replay is not None:
        given[str(asked.replay)] = set(_logs(found.replay.manifest))
    for name, logs in given.items():
        if fitted and logs and not fitted & logs:
            what = "is not the log" if name == str(asked.log) else "is not estimated from the log"
            raise LogevalError(
                f"{name}: {what} that the models of these runs were fitted to; give that of the "
                "same log, or leave it out"
            )


def _logs(manifest: tables.Manifest) -> list[str]:
    """The identities of the logs that an output was made from."""
    return [one["log"] for one in manifest.get("inputs", []) if one.get("log")]


def refuse_other_models(
    folder: Path, manifest: tables.Manifest, named: str, models: FittedModels
) -> None:
    """Raise if the runs of ``folder`` were made with other models than those in ``named``."""
    made_with = [work for work in manifest.get("models_work", []) if work]
    if made_with and tables.work_of(models.manifest) not in made_with:
        raise LogevalError(
            f"{named}: is not the models folder that {folder} was made with; fit the same models "
            "again, run evaluate again, or give the folder of those models"
        )


ASIDE = 2_100  # characters that are no longer than the figure and tables that they stand beside
NARROW = 5.5  # inches: figures of one panel that can stand side by side
NAMED = ("query", "of")  # columns with names of queries and items, which may be long
WIDEST = 7  # columns that fit a page of 1280 pixels
KINDS = {".csv": "text/csv", ".pdf": "application/pdf", ".svg": "image/svg+xml"}


class Cell(NamedTuple):
    """What a table shows in one place: text, the value to sort by, small print, and a mark."""

    text: str
    key: Any = None
    small: str = ""
    marked: bool = False
    whole: str = ""  # of a name that is shortened

    def short(self) -> Cell:
        """The same with a long name shortened, and whole under the pointer."""
        short = shortened(self.text)
        return self if short == self.text else self._replace(text=short, whole=self.text)


@dataclass
class Section:
    """A heading and what follows it: blocks with a ``kind`` that the template knows."""

    title: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    words: Sequence[str] = ()  # of the glossary, that explain it
    docs: str = ""  # the page that explains it
    background: bool = False  # folded on a small screen
    folded: bool = False  # in the background, and folded on every screen
    verdict: dict[str, Any] | None = None  # of the first screen


class Page:
    """Collects sections; ``write`` renders them into ``index.html``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self._blocks: list[dict[str, Any]] = []  # where the next block goes
        (folder / "figures").mkdir(parents=True)
        (folder / "tables").mkdir()

    def section(
        self,
        title: str,
        *,
        words: Sequence[str] = (),
        docs: str = "",
        background: bool = False,
        folded: bool = False,
    ) -> None:
        """Start a section; one in the ``background`` is folded on a small screen.

        ``words`` of the glossary, and a page of the ``docs``, say what it is about.
        """
        self.sections.append(
            Section(
                title,
                words=words,
                docs=docs and docs_page(docs),
                background=background or folded,
                folded=folded,
            )
        )
        self._blocks = self.sections[-1].blocks

    @contextmanager
    def folded(self, caption: str) -> Iterator[None]:
        """What is added within is folded away at first."""
        outside = self._blocks
        inside: list[dict[str, Any]] = []
        self._add(kind="fold", caption=caption, blocks=inside)
        self._blocks = inside
        try:
            yield
        finally:
            self._blocks = outside

    def heading(self, text: str) -> None:
        """A heading within a section."""
        self._add(kind="heading", text=text)

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(kind="text", text=text)

    def verdict(self, found: Verdict) -> None:
        """Of this section: the answer and, beside and below what else is in it, the rest."""
        length = sum(map(len, [*found.trust, *found.limits]))
        below = [found.details] if length <= ASIDE else [found.limits, found.details]
        parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for title, lines in found.sections():
            parts[lines in below].append(
                {
                    "title": title,
                    "lines": lines,
                    "open": lines is not found.details,
                    "background": lines is found.limits,
                }
            )
        self.sections[-1].verdict = {
            "decision": found.decision,
            "answer": found.answer,
            "sound": found.sound,
            "beside": parts[False],
            "below": parts[True],
        }

    def notes(self, notes: Sequence[str]) -> None:
        """Things to know before believing a number."""
        if notes:
            self._add(kind="notes", notes=list(notes))

    def lines(self, lines: Sequence[str]) -> None:
        """Sentences, one below the other."""
        if lines:
            self._add(kind="lines", lines=list(lines))

    def code(self, caption: str, text: str) -> None:
        """A listing that is folded away at first."""
        self._add(kind="code", caption=caption, text=text)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names with their values."""
        self._add(kind="facts", facts={k: cell(v) for k, v in facts.items()})

    def glossary(self) -> None:
        """The words that sections link to."""
        words = [{"id": anchor(word), "word": word, "text": GLOSSARY[word]} for word in GLOSSARY]
        self._add(kind="glossary", words=words)

    def figure(
        self,
        name: str,
        figure: Any,
        how_to_read: str,
        *,
        queries: Sequence[str] = (),
        first: int | None = None,
    ) -> None:
        """A figure of matplotlib, with two sentences on how to read it.

        ``queries`` are those of its panels: the reader can choose one. Only the ``first`` panels
        are shown at once, the others are folded away.
        """
        name = file_name(name)
        kinds = ("svg",) if queries else ("svg", "pdf")  # nobody prints sixty queries
        files = {kind: self.folder / "figures" / f"{name}.{kind}" for kind in kinds}
        with laid_out(figure):
            for kind, file in files.items():
                file.write_bytes(drawn(figure, kind))
            legend, panels = inline(figure, files["svg"].read_text(encoding="utf-8"), name)
        shown = zip(panels, queries or [""] * len(panels), strict=True)
        all_panels = [{"svg": svg, "query": query} for svg, query in shown]
        self._add(
            kind="figure", name=name, text=how_to_read, legend=legend, queries=queries,
            narrow=len(panels) == 1 and figure.get_figwidth() <= NARROW,
            panels=all_panels[:first], more=[] if first is None else all_panels[first:],
            files=_links(list(files.values())),
        )  # fmt: skip

    def table(
        self,
        name: str,
        frame: pd.DataFrame,
        caption: str,
        *,
        shown: Mapping[str, Sequence[tuple[Any, ...]]] | None = None,
        query: str = "",
        folded: bool = False,
        rows: int | None = None,
        more: bool = True,
        **formats: str,
    ) -> None:
        """A table; ``formats`` say how the numbers of a column are shown, as ``p=".3f"``.

        ``shown`` are columns to show instead, by title: for each row a ``Cell``, or its text and
        the value by which it is sorted. The whole frame is in the CSV, and folded away below
        (unless there is not ``more``). With more than ``WIDEST`` columns the first are shown.
        ``query`` is the column that the picker looks at, ``folded`` hides all of it at first, and
        only the first ``rows`` are shown.
        """
        name = file_name(name)
        file = self.folder / "tables" / f"{name}.csv"
        file.write_text(csv_of(frame), encoding="utf-8")
        frame = frame if rows is None else frame.head(rows)
        formats = {str(c): "d" for c in frame if str(c).endswith("_id")} | formats
        shown_as = {str(c): cells(frame[c], formats.get(str(c), "")) for c in frame}
        columns = {name.replace("_", " "): column for name, column in shown_as.items()}
        first: Mapping[str, Any] = dict(list(columns.items())[:WIDEST]) if shown is None else shown
        fold = []
        if more and (shown is not None or len(columns) > WIDEST):
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
        environment.filters["anchor"] = anchor
        template = environment.get_template("report.html")
        html = template.render(
            title=title, subtitle=subtitle, sections=self.sections, footer=footer
        )
        (self.folder / "index.html").write_text(html, encoding="utf-8")

    def _add(self, **block: Any) -> None:
        self._blocks.append(block)


def file_name(name: str) -> str:
    """The name without what a file, or an id on the page, cannot have: ``DCM(scope=pooled)``."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")


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


def cells(column: pd.Series, spec: str = "") -> list[tuple[str, Any]]:
    """The texts of a column, and the values by which they are sorted."""
    values = [(cell(value, spec), value) for value in column.astype(object).tolist()]
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return [(text, value if numeric and text else None) for text, value in values]


def _grid(
    columns: Mapping[str, Sequence[tuple[Any, ...]]], queries: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns as the template wants them: rows of cells, and which columns are numbers."""
    made = [
        [Cell(*cell).short() if name in NAMED else Cell(*cell) for cell in column]
        for name, column in columns.items()
    ]
    return {
        "columns": list(columns),
        "numeric": [any(cell.key is not None for cell in column) for column in made],
        "rows": [
            {"cells": row, "query": queries[i] if queries else ""}
            for i, row in enumerate(zip(*made, strict=True))
        ],
    }
