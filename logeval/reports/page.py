"""A self-contained page: what it is about, and sections of text, figures and tables.

Figures are inline SVG; tables are shown rounded. Every figure and table can be saved from the page
itself (as a data: URI), so one file is complete; the same files are beside it. Text is escaped by
the template, wherever it comes from.
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
from logeval.decision.decision import Decision
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.log.log import Log, load
from logeval.log.names import Names, shortened
from logeval.replay.estimate import Estimates
from logeval.reports.figures.canvas import drawn, inline, laid_out
from logeval.running.words import cell
from logeval.storage import tables
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    from logeval.reports.report import Report


@dataclass(frozen=True)
class Content:
    """Everything that the sections of a report may look at."""

    runs: Sequence[Runs] = ()
    decision: Decision | None = None
    models: Mapping[str, FittedModels] = field(default_factory=dict)  # by folder
    log: Log | None = None
    recipe: Path | None = None
    replay: Estimates | None = None  # what replay estimated from the log itself
    notes: Sequence[str] = ()  # what could not be found any more

    def suffix(self, i: int) -> str:
        """What tells the files of the i-th runs from those of others."""
        return "" if len(self.runs) == 1 else f"-{i + 1}"

    def where(self, i: int) -> str:
        """What tells the headings of the i-th runs from those of others."""
        return "" if len(self.runs) == 1 else f": {self.runs[i].folder or 'in memory'}"

    @cached_property
    def names(self) -> dict[str, str]:
        """All queries of the page, by the names that they have everywhere on it."""
        queries = {str(q) for runs in self.runs for q in runs.to_pandas()["query"].unique()}
        found = Names()
        every: list[Any] = [*self.runs, *self.models.values()]
        for one in every:
            found |= one.names
        if self.replay is not None:
            queries |= set(map(str, self.replay.table["query"].dropna()))
            found |= Names.of(self.replay.manifest)
        return found.titles(queries, width=None)

    @property
    def check_errors(self) -> dict[str, dict[str, tuple[float, bool]]]:
        """Of each click model with its checks: the errors, and whether they are faulted."""
        reports = {n: f.report for models in self.models.values() for n, f in models.fitted.items()}
        for runs in self.runs:
            reports |= {name: about for name, about in runs.simulators.items() if about["checks"]}
        known = {name: report.get("checks") or {} for name, report in reports.items()}
        return {
            name: {check: (x, check in its["faulted"]) for check, x in its["errors"].items()}
            for name, its in known.items()
            if its.get("errors")
        }


def content_of(asked: Report) -> Content:
    """Runs and decision with their models and log: those given, or those that manifests name.

    A folder that a manifest names and that is gone is left out, with a note. Models and logs that
    are not those of the runs are refused.
    """
    stages = {folder: tables.read_manifest(folder) for folder in asked.folders}
    decided = [folder for folder, made in stages.items() if made["stage"] == "decide"]
    if len(decided) > 1:
        raise LogevalError(f"{decided[1]}: a page is about one decision; make another for this one")
    of_runs = {folder: made for folder, made in stages.items() if folder not in decided}
    notes: list[str] = []
    models = _models(asked, of_runs, notes)
    replay = None if asked.replay is None else Estimates.read(asked.replay)
    runs = [*map(Runs.load, of_runs), *asked.in_memory]
    return Content(
        [one.only(asked.policies, asked.n_runs) for one in runs],
        Decision.read(decided[0]) if decided else None,
        models,
        _log(asked, models, replay, notes),
        Path(asked.recipe) if asked.recipe else None,
        replay,
        notes,
    )


def _models(
    asked: Report, runs: Mapping[Path, tables.Manifest], notes: list[str]
) -> dict[str, FittedModels]:
    found: dict[str, FittedModels] = {}
    if not runs and asked.models is not None:
        found[str(asked.models)] = read_models(asked.models)
    for folder, manifest in runs.items():
        named = asked.models if asked.models is not None else manifest.get("models_folder")
        if named is None:
            continue
        if asked.models is None and not tables.there_is(named):
            notes.append(f"the models of {folder} are no longer in {named}")
            continue
        if str(named) not in found:
            found[str(named)] = read_models(named)
        refuse_other_models(folder, manifest, str(named), found[str(named)])
    return found


def _log(
    asked: Report, models: Mapping[str, FittedModels], replay: Estimates | None, notes: list[str]
) -> Log | None:
    named = asked.log
    if named is None:
        named = next((m.manifest.get("log_folder") for m in models.values()), None)
        if named is not None and not tables.there_is(named):
            notes.append(f"the log is no longer in {named}")
            named = None
    log = None if named is None else load(named)
    fitted = {one for m in models.values() for one in _logs(m.manifest)}
    given: list[tuple[Any, str, set[str]]] = (
        [] if asked.log is None or log is None else [(asked.log, "is not the log", {log.identity})]
    )
    if replay is not None:
        given.append((asked.replay, "is not estimated from the log", set(_logs(replay.manifest))))
    for name, what, logs in given:
        if fitted and logs and not fitted & logs:
            raise LogevalError(
                f"{name}: {what} that the models of these runs were fitted to; give that of the "
                "same log, or leave it out"
            )
    return log


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


Columns = Mapping[str, Sequence[Cell]]


@dataclass
class Section:
    """A heading and what follows it: blocks with a ``kind`` that the template knows."""

    title: str
    folded: bool = False
    blocks: list[dict[str, Any]] = field(default_factory=list)


class Page:
    """Collects sections; ``write`` renders them into ``index.html``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head = Section("")  # the first screen
        self.sections: list[Section] = []
        self._blocks = self.head.blocks  # where the next block goes
        (folder / "figures").mkdir(parents=True)
        (folder / "tables").mkdir()

    @contextmanager
    def section(self, title: str, *, folded: bool = False) -> Iterator[None]:
        """What is added within is under this heading, below the first screen."""
        self.sections.append(Section(title, folded))
        outside, self._blocks = self._blocks, self.sections[-1].blocks
        try:
            yield
        finally:
            self._blocks = outside

    @contextmanager
    def folded(self, caption: str) -> Iterator[None]:
        """What is added within is folded away at first."""
        inside: list[dict[str, Any]] = []
        self._add(kind="fold", caption=caption, blocks=inside)
        outside, self._blocks = self._blocks, inside
        try:
            yield
        finally:
            self._blocks = outside

    def answer(
        self, kind: str, word: str, why: str, believe: Sequence[str], steps: Sequence[str]
    ) -> None:
        """What to do, why, what it rests on, and what to do next."""
        self._add(
            kind="answer", decision=kind.lower(), word=word, why=why, believe=list(believe),
            steps=list(steps),
        )  # fmt: skip

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(kind="text", text=text)

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

    def figure(
        self, name: str, figure: Any, caption: str = "", *, first: int | None = None
    ) -> None:
        """A figure of matplotlib; only the ``first`` panels are shown at once."""
        name = file_name(name)
        files = {k: self.folder / "figures" / f"{name}.{k}" for k in ("svg", "pdf")}
        with laid_out(figure):
            for kind, file in files.items():
                file.write_bytes(drawn(figure, kind))
            legend, panels = inline(figure, files["svg"].read_text(encoding="utf-8"), name)
        self._add(
            kind="figure", name=name, text=caption, legend=legend, panels=panels[:first],
            more=[] if first is None else panels[first:], files=_links(list(files.values())),
        )  # fmt: skip

    def table(
        self,
        name: str,
        frame: pd.DataFrame,
        caption: str = "",
        *,
        shown: Columns | None = None,
        titles: Mapping[str, str] | None = None,
        rows: int | None = None,
        **formats: str,
    ) -> None:
        """A table, whole in its CSV; on the page ``shown``, or its first columns and ``rows``.

        ``formats`` say how the numbers of a column are shown, as ``p=".3f"``; ``titles`` explain
        columns under the pointer.
        """
        name = file_name(name)
        file = self.folder / "tables" / f"{name}.csv"
        file.write_text(csv_of(frame), encoding="utf-8")
        if shown is None:
            part = frame.head(len(frame) if rows is None else rows)
            shown = {
                str(c).replace("_", " "): cells(part[c], formats.get(str(c), ""))
                for c in list(part)[:WIDEST]
            }
        self.grid(name, shown, caption, titles, _links([file]))

    def grid(
        self,
        name: str,
        columns: Columns,
        caption: str = "",
        titles: Mapping[str, str] | None = None,
        files: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """A table of the page alone."""
        heads = [
            {
                "name": head,
                "about": (titles or {}).get(head, ""),
                "number": any(one.key is not None for one in column),
            }
            for head, column in columns.items()
        ]
        rows = list(zip(*columns.values(), strict=True))
        self._add(kind="table", name=name, caption=caption, heads=heads, rows=rows, files=files)

    def write(self, title: str, subtitle: str, footer: str = "") -> None:
        """Render the page."""
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("logeval.reports"), autoescape=True, trim_blocks=True
        )
        html = environment.get_template("report.html").render(
            title=title, subtitle=subtitle, head=self.head, sections=self.sections, footer=footer
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


def cells(column: pd.Series, spec: str = "") -> list[Cell]:
    """The cells of a column; numbers sort by their values."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    made = [(cell(value, spec), value) for value in column.astype(object).tolist()]
    return [Cell(text, value) if numeric and text else Cell(text).short() for text, value in made]
