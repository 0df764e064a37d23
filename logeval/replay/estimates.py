"""Estimates of what rankers would have earned, with intervals, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.fitting import CANDIDATES, fit_models, with_best_model
from logeval.replay.left_out import known_queries, left_out, size_of
from logeval.replay.logged import MAX_POSITIONS, Logged, cut, parts_sql, read_logged
from logeval.replay.targets.read import TargetSource, bind, is_learned, read_source
from logeval.replay.targets.target import MarginalTarget, Target
from logeval.replay.values.estimate import Estimate, add_intervals
from logeval.replay.values.values import Values
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from logeval.replay.estimate import ReplayEstimate
    from logeval.reports.answers.answer import Answer


@dataclass(frozen=True)
class Estimates(Stored):
    """What ``replay_estimate`` gives: rows in the schema ``schemas.ESTIMATES``, and notes."""

    TABLES: ClassVar = {"table": "estimates"}
    KEPT = ("notes", "contradictions", "predicting")

    table: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    # pairs of estimators that differ by more than chance: target, first, second, difference
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)
    # of ``auto``: log-likelihoods per result of held-out sessions by model, the best first
    predicting: dict[str, float] | None = None

    def overall(self) -> pd.DataFrame:
        """The rows over all queries."""
        return self.table[self.table["query"].isna()].drop(columns="query")

    def plot(self, ax: Axes | None = None) -> Axes:
        """The overall value of every target by every estimator, with intervals."""
        from logeval.reports.figures.replay import plot_estimates

        return plot_estimates(self, ax)

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.estimates import verdict

        return verdict(self)


def estimate(asked: ReplayEstimate, manifest: tables.Manifest) -> Estimates:
    """The clicks per SERP of all targets, estimated in the same resampled logs."""
    import pandas as pd

    log, chosen = asked.opened, asked.chosen
    sources = [read_source(name, log, frame) for name, frame in asked.given.items()]
    if asked.inputs() != manifest["inputs"]:
        raise LogevalError("a target was replaced while it was read; run the command again")
    learned = any(is_learned(s.name) for s in sources)
    with_models = learned or any(e.needs is not None for e in chosen)
    whole, K = _read(log, sources, asked, None if with_models else asked.positions)
    targets = [bind(source, whole, K, asked.scope, asked.seed) for source in sources]
    notes = left_out(sources, targets, whole, asked)
    weights: dict[str, Any] = {"smoothing": asked.smoothing, "folds": asked.cross_fit}
    weights |= {} if asked.clip is None else {"clip": asked.clip}
    ranks_only = any(isinstance(t, MarginalTarget) for t in targets)
    candidates = CANDIDATES[:1] if ranks_only else CANDIDATES  # others need whole lists
    chosen, predicting = with_best_model(chosen, whole, asked.scope, asked.seed, candidates)
    models = partial(fit_models, chosen, whole, scope=asked.scope, folds=asked.cross_fit)
    short, fitted = cut(whole, K), models(whole.patterns.count)
    found = []
    for target in targets:
        values = Values(short, target, chosen, **weights)
        predictions = values.predictions(fitted)
        found.append(Estimate(values, predictions, asked.min_support, asked.force))
    if not any(each.answered for each in found):
        raise found[0].refusal(log.path)
    add_intervals(found, whole, models, asked.rounds, asked.refits, asked.seed, asked.quiet)
    manifest["log_folder"] = str(log.path)
    if asked.wanted is None and asked.top_queries is None:
        manifest["log_queries"], manifest["log_serps"] = size_of(log)
    table = pd.concat([e.table() for e in found], ignore_index=True)
    manifest["names"] = log.names.of_queries(table["query"].dropna().unique()).kept()
    contradictions = [pair for e in found for pair in e.contradictions()]
    return Estimates(table, notes, contradictions, manifest, predicting)


def point_and_interval(
    whole: Logged, target: Target, estimators: list[Estimator], rounds: int, seed: int,
    refits: int = 0,
) -> dict[Estimator, tuple[float, float]]:  # fmt: skip
    """The overall value of a target and half of its 95% interval."""
    models = partial(fit_models, estimators, whole, scope="per-query")
    values = Values(cut(whole, target.K), target, estimators)
    found = Estimate(values, values.predictions(models(whole.patterns.count)))
    add_intervals([found], whole, models, rounds, refits, seed, quiet=True)
    pairs = zip(found.value[:, 0], found.half_widths()[0][:, 0], strict=True)
    return dict(zip(estimators, pairs, strict=True))


def _read(
    log: Log, sources: list[TargetSource], asked: ReplayEstimate, cut_at: int | None
) -> tuple[Logged, int]:
    """The log without what is itself a target, and K."""
    wanted, positions = asked.wanted, asked.positions
    given = [s.table for s in sources if s.table is not None]
    if given and wanted is None and asked.top_queries is None:
        wanted = known_queries(log, [q for table in given for q in table["query"]])
    ends = [int(table.groupby(["query", "list"])["rank"].max().min()) for table in given]
    shortest = min(ends, default=None)
    excluded = " OR ".join(f"({s.excluded})" for s in sources)
    logged = read_logged(
        log, cut_at, queries=wanted, top_queries=asked.top_queries,
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
    return logged, K
