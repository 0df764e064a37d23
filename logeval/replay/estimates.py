"""Estimates of what rankers would have earned, with intervals, and how they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.replay.bootstrap import resampled
from logeval.replay.estimation import Estimation, Settings, fit_models
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.logged import Cut, Logged, cut, parts_sql, read_logged
from logeval.replay.propensities import check_logged
from logeval.replay.read_target import TargetSource, bind, read_source
from logeval.replay.targets import Target
from logeval.replay.valuation import Valuation
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    import pandas as pd

    from logeval.replay.estimate import ReplayEstimate

MAX_POSITIONS = 10  # unless more are asked for


@dataclass(frozen=True)
class Estimates(Stored):
    """What ``replay_estimate`` gives: rows in the schema ``schemas.ESTIMATES``, and notes."""

    TABLES: ClassVar = {"table": "estimates"}
    KEPT = ("notes",)

    table: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)

    def overall(self) -> pd.DataFrame:
        """The rows over all queries."""
        return self.table[self.table["query"].isna()].drop(columns="query")

    def rows(self) -> list[dict[str, Any]]:
        """The rows for JSON; what does not apply is None."""
        rows = self.table.astype(object).where(self.table.notna(), None)
        return [{str(k): v for k, v in row.items()} for row in rows.to_dict(orient="records")]


def estimate(asked: ReplayEstimate, manifest: tables.Manifest) -> Estimates:
    """The clicks per SERP of all targets, estimated in the same resampled logs."""
    log = asked.opened
    chosen = asked.chosen
    sources = [read_source(name, log) for name in asked.targets]
    if asked.inputs() != manifest["inputs"]:
        raise LogevalError("a target was replaced while it was read; run the command again")
    with_models = any(e.model is not None or e.EXAMINATION for e in chosen)
    learned = [s.name for s in sources if s.name.startswith("best:") or s.name == "by-ctr"]
    whole, K, notes = _read(log, sources, asked, whole=with_models or bool(learned))
    notes += [
        f"{name}: chosen on the clicks by which it is judged here, so its value is too high; make "
        "the ranker from one part of the log and estimate it on another"
        for name in learned
    ]
    settings = Settings(
        math.inf if asked.clip is None else asked.clip,
        asked.smoothing,
        asked.cross_fit,
        asked.scope,
    )
    targets = [bind(source, whole, K, asked.scope, asked.seed) for source in sources]
    short = cut(whole, K)
    models = fit_models(chosen, whole, whole.patterns.count, settings)
    reports = []
    for t in targets:
        estimation = Estimation(short.logged, t, chosen, settings)
        reports.append(
            Valuation(estimation, estimation.fits(models), log.path, asked.min_support, asked.force)
        )
    _bootstrap(reports, short.logged, asked.rounds, asked.seed, asked.quiet)
    if asked.rounds and any(e.model is not None for e in chosen):
        _refit(reports, whole, short, asked.refits, asked.seed, asked.quiet)
    import pandas as pd

    table = pd.concat([r.table() for r in reports], ignore_index=True)
    manifest["log_folder"] = str(log.path)
    return Estimates(table, notes, manifest)


def point_and_interval(
    whole: Logged, target: Target, estimators: list[Estimator], settings: Settings, rounds: int,
    seed: int, refits: int = 0,
) -> dict[Estimator, tuple[float, float]]:  # fmt: skip
    """The overall value of a target and half of its 95% interval."""
    short = cut(whole, target.K)
    estimation = Estimation(short.logged, target, estimators, settings)
    fits = estimation.fits(fit_models(estimators, whole, whole.patterns.count, settings))
    report = Valuation(estimation, fits, Path(target.name), 0.0, force=True)
    _bootstrap([report], short.logged, rounds, seed, quiet=True)
    if refits:
        _refit([report], whole, short, refits, seed, quiet=True)
    value, half = report.centre()[:, 0], report.half_widths()[0][:, 0]
    return {e: (value[i], half[i]) for i, e in enumerate(estimators)}


def _read(
    log: Log, sources: list[TargetSource], asked: ReplayEstimate, whole: bool
) -> tuple[Logged, int, list[str]]:
    """The log without what is itself a target, K, and what was left out."""
    notes: list[str] = []
    wanted, positions = asked.wanted, asked.positions
    tabled = [s for s in sources if s.table is not None]
    if tabled and wanted is None and asked.top_queries is None:
        wanted = list(dict.fromkeys(q for s in tabled for q in s.queries or []))
    shortest = min((s.positions for s in sources if s.positions is not None), default=None)
    excluded = " OR ".join(f"({s.excluded})" for s in sources)
    logged = read_logged(
        log, None if whole else positions, queries=wanted, top_queries=asked.top_queries,
        where=f"NOT coalesce({excluded}, false)",
        part=parts_sql(asked.cross_fit, asked.seed) if asked.cross_fit > 1 else "0",
        propensities=asked.propensities == "logged",
    )  # fmt: skip
    longest = logged.patterns.K
    K = positions or min(longest, MAX_POSITIONS, shortest or MAX_POSITIONS)
    if longest < K:
        raise LogevalError(f"positions={K}: the lists of the log have at most {longest} items")
    if shortest is not None and shortest < K:
        raise LogevalError(
            f"positions={K}: the target's lists have {shortest} items; ask for {shortest} or "
            "give longer lists"
        )
    if logged.propensities is not None:
        check_logged(logged.propensities, logged.patterns.items >= 0, str(log.path))
    known = set(logged.patterns.queries)
    for source in sources:
        if source.logged is not None:
            own = source.logged.patterns
            lost = [q for q, query in enumerate(own.queries) if query not in known]
            if lost and wanted is None and asked.top_queries is None:
                share = own.serps[lost].sum() / own.serps.sum()
                notes.append(
                    f"{source.name}: {len(lost)} of its {own.Q} queries ({share:.1%} of its SERPs) "
                    "are not in the rest of the log and are left out"
                )
    return logged, K, notes


def _bootstrap(
    reports: list[Valuation], logged: Logged, rounds: int, seed: int, quiet: bool
) -> None:
    with Progress("bootstrap", rounds, "rounds", quiet) as progress:
        for W in resampled(logged, rounds, seed):
            for report in reports:
                report.add(W, report.fits, refit=False)
            progress.advance(W.shape[1])


def _refit(
    reports: list[Valuation], whole: Logged, short: Cut, refits: int, seed: int, quiet: bool
) -> None:
    """A few rounds in which the click models are fitted again, to whole lists."""
    with Progress("fit again", refits, "rounds", quiet) as progress:
        for W in resampled(whole, refits, seed):
            for b in range(W.shape[1]):
                weight = W[:, b].astype(np.float64)
                of = reports[0].estimation
                models = fit_models(of.estimators, whole, weight, of.settings)
                for report in reports:
                    fits = report.estimation.fits(models)
                    report.add(short.fold @ weight[:, None], fits, refit=True)
                progress.advance(1)
