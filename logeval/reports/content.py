"""What a report is about: runs, and the models and logs that they were made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logeval.clicks.collection import FittedModels, read_models
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.log.describe import Description
from logeval.log.log import Log, load
from logeval.log.names import Names
from logeval.replay.estimates import Estimates
from logeval.storage import tables

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
