"""One target on one log: its values by all estimators, their support, and their intervals.

Estimates of what rankers would have earned, with intervals, and how they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from logeval.clicks.fitted import FittedModel
from logeval.clicks.support.selection import expected_empty
from logeval.errors import LogevalError
from logeval.facts import Fact
from logeval.log.log import Log
from logeval.log.queries import Query, sql_condition
from logeval.replay.estimators import Estimator
from logeval.replay.logged import MAX_POSITIONS, Logged, cut, read_logged, resampled, rows_of
from logeval.replay.models import CANDIDATES, fit_models, with_best_model
from logeval.replay.targets import (
    MarginalTarget,
    Target,
    TargetSource,
    bind,
    is_learned,
    numbered_queries,
    read_source,
)
from logeval.replay.values import COLUMNS, Predictions, Support, Values
from logeval.running.arrays import Bools, Floats
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.facts import Answer
    from logeval.replay.stages import ReplayEstimate


FEW = 100  # effective SERPs, below which an interval is not to be relied on
NORMAL = 1.959964  # standard deviations in half of a 95% interval
FIGURES = (
    "value", "low", "high", "logged", "difference", "difference_low", "difference_high"
)  # fmt: skip
ROUNDING = 1e-6  # of clicks per SERP; the draws are summed in single precision


class Moments:
    """Running mean and variance of columns, draw by draw; nan is left out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n, self.sum, self.square = np.zeros((3, *shape))

    def add(self, x: Floats) -> None:
        """Draws in the last axis, centred near 0."""
        there = np.isfinite(x)
        x = np.where(there, x, 0.0)
        self.n += there.sum(axis=-1)
        self.sum += x.sum(axis=-1)
        self.square += (x**2).sum(axis=-1)

    def half_width(self, normal: bool, below: float = 0.975) -> Floats:
        """1.96 (or Student's quantile, for few draws) standard deviations; nan without draws."""
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = (self.square - self.sum**2 / self.n) / (self.n - 1)
            quantile = ndtri(below) if normal else stdtrit(self.n - 1, below)
            return np.where(self.n > 1, quantile * np.sqrt(np.maximum(variance, 0.0)), np.nan)


class Estimate:
    """One target: its values, and what the rounds add to them.

    Arrays have the overall value in front, and then the queries, (Q + 1,). The overall value of an
    estimator is over the queries that it covers: those of which the log has shown ``min_support``
    of what the target shows, or all of them with ``force``. Of the others it has no value.
    """

    def __init__(
        self,
        values: Values,
        predictions: Predictions,
        min_support: float = 0.0,
        force: bool = False,
    ) -> None:
        self.values, self.predictions, self.min_support = values, predictions, min_support
        target, patterns = values.target, values.logged.patterns
        self.estimators, n = values.estimators, patterns.serps
        self.used = target.mass().sum(axis=1) > 0
        # those of a target that is a log are its own
        self.weight = np.where(self.used, n if target.serps is None else target.serps, 0.0)
        found = [values.support(e, predictions) for e in self.estimators]
        enough = [
            ~(self._columns(e, own, self.weight)["support"][1:] < min_support) | force  # of DM nan
            for e, own in zip(self.estimators, found, strict=True)
        ]
        self.covered = np.stack(enough) & self.used  # (E, Q)
        self.support = [
            self._columns(e, own, np.where(c if c.any() else self.used, self.weight, 0.0))
            for e, own, c in zip(self.estimators, found, self.covered, strict=True)
        ]
        self.fewest = [
            np.inf
            if own is None
            else own.fewest(n, np.where(c, self.weight, 0.0) / self.weight.sum())
            for own, c in zip(found, self.covered, strict=True)
        ]
        E = len(self.estimators)
        self.pairs = [(i, j) for i in range(E) for j in range(i)]
        value, logged, apart = self._all(patterns.count[:, None], predictions)
        self.value, self.logged, self.apart = value[:, :, 0], logged[:, :, 0], apart[:, 0]
        # of the values, of their differences to the log, and of those between two estimators
        shape = (2, *self.value.shape)
        self.rounds, self.refits = Moments(shape), Moments(shape)
        self.pair_rounds, self.pair_refits = Moments(apart.shape[:1]), Moments(apart.shape[:1])

    @classmethod
    def of(
        cls,
        logged: Logged,
        target: Target,
        estimators: Sequence[Estimator],
        fitted: dict[str, FittedModel],
        asked: ReplayEstimate,
        rewards: bool,
    ) -> Estimate:
        """As asked, in clicks or in the second reward."""
        clip = asked.clip or np.inf
        values = Values(logged, target, estimators, clip=clip, rewards=rewards)
        return cls(values, values.predictions(fitted), asked.min_support, asked.force)

    def _columns(
        self, estimator: Estimator, found: Support | None, weight: Floats
    ) -> dict[str, Floats]:
        """``COLUMNS`` over the queries with a weight, and of each query."""
        if found is None:
            return dict.fromkeys(COLUMNS, np.full(self.values.Q + 1, np.nan))
        at = self._prefixes if estimator.LEVEL == "list" else None
        share, n = weight / max(weight.sum(), 1e-300), self.values.logged.patterns.serps
        return found.columns(n, share, self.min_support, at)

    @cached_property
    def _prefixes(self) -> Floats:
        return self.values.prefix_support()

    @property
    def answered(self) -> bool:
        """Whether some estimator that looks at the target covers a query of it."""
        looking = [i for i, e in enumerate(self.estimators) if e.LEVEL != "position"]
        return not looking or bool(self.covered[looking].any())

    def refusal(self, log: Path) -> LogevalError:
        """The error for a target of which too little was ever shown."""
        enough, queries = self.min_support, self.values.logged.patterns.queries
        low = [
            (s["support"][0], e, s)
            for e, s in zip(self.estimators, self.support, strict=True)
            if s["support"][0] < enough
        ]
        _, _, s = max(low, key=lambda each: each[0])
        lacking = [q for q in np.argsort(-self.weight) if self.used[q]]
        where = ", ".join(
            f"{queries[q]} up to K = {s['supported_positions'][1 + q]}" for q in lacking[:8]
        )
        more = f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
        return LogevalError(
            f"{log}: too little of the target {self.values.target.name} was ever shown: "
            f"support {', '.join(f'{e} {share:.0%}' for share, e, _ in low)}, and no query has "
            f"{enough:.0%}; up to which K queries have it: {where}{more}; ask for fewer "
            "positions, take another estimator, or count what was not shown as no clicks, with "
            "force=True"
        )

    def _overall(self, values: Floats, n: Floats, covered: Bools) -> Floats:
        """(B,) of (Q, B) values: their mean over the covered queries."""
        fixed = self.values.target.serps is not None
        weight = np.where(covered[:, None], self.weight[:, None] if fixed else n, 0.0)
        weight = np.where(np.isfinite(values), weight, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall: Floats = (weight * np.nan_to_num(values)).sum(axis=0) / weight.sum(axis=0)
        return overall

    def _all(self, W: Floats, predictions: Predictions) -> tuple[Floats, Floats, Floats]:
        """In logs W (P, B): values and what the logger earned (E, Q + 1, B), differences of pairs.

        These (pairs, B) are over the queries that both cover.
        """
        n, gain = self.values.serps(W), self.values.gains.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            earned = self.values.serps(W * gain[:, None]) / n
        found = list(self.values.values(W, predictions).values())
        value, logged = [], []
        for x, covered in zip(found, self.covered, strict=True):
            mine = np.where(covered[:, None], x, np.nan)
            value.append(np.concatenate([self._overall(x, n, covered)[None], mine]))
            logged.append(np.concatenate([self._overall(earned, n, covered)[None], earned]))
        apart = [
            self._overall(found[i] - found[j], n, self.covered[i] & self.covered[j])
            for i, j in self.pairs
        ]
        return np.stack(value), np.stack(logged), np.array(apart).reshape(-1, W.shape[1])

    def add(self, W: Floats, predictions: Predictions, refitted: bool = False) -> None:
        """Resampled logs W (P, B), with the models of the log or with their own."""
        value, logged, apart = self._all(W, predictions)
        paired = value - logged - (self.value - self.logged)[:, :, None]
        to, pairs = (self.refits, self.pair_refits) if refitted else (self.rounds, self.pair_rounds)
        to.add(np.stack([value - self.value[:, :, None], paired]))
        pairs.add(apart - self.apart[:, None])

    def half_widths(self) -> tuple[Floats, Floats]:
        """Half of the 95% intervals of the values, and of their differences to the log.

        nan where all draws agree: a query without a click on what the target shows is worth 0 in
        every resampled log, which does not tell how far off that is.
        """
        half = self.rounds.half_width(True)
        if self.refits.n.any():
            modelled = [i for i, e in enumerate(self.estimators) if e.model is not None]
            half[:, modelled] = self.refits.half_width(False)[:, modelled]
        else:  # a direct method without a refit has no interval
            half[:, [i for i, e in enumerate(self.estimators) if e.LEVEL is None]] = np.nan
        value, paired = np.where(half[0] > ROUNDING, half, np.nan)
        return value, paired

    def contradictions(self) -> list[dict[str, Any]]:
        """Pairs of estimators that differ by more than chance, on the queries that both cover.

        The intervals hold for all pairs together. None is said where a position rests on few
        SERPs: it may have no click in any resampled log. The smaller value may lack what the log
        has never shown, so it is also allowed that; where weights were clipped it is too small.
        """
        found = []
        below = 1.0 - 0.025 / max(len(self.pairs), 1)
        rounds = self.pair_rounds.half_width(True, below)
        refits = self.pair_refits.half_width(False, below)
        for p, (i, j) in enumerate(self.pairs):
            modelled = [self.estimators[e].model is not None for e in (i, j)]
            half = refits[p] if any(modelled) else rounds[p]
            small = min(i, j, key=lambda e: self.value[e, 0])
            missing = self._missing(small)
            few = [self.fewest[e] < FEW for e in (i, j)]
            clipped = self.support[small]["clipped"][0] > 0
            if any(few) or clipped or not abs(self.apart[p]) > half + missing + ROUNDING:
                continue
            found.append(
                {
                    "target": self.values.target.name,
                    "first": str(self.estimators[i]),
                    "second": str(self.estimators[j]),
                    "difference": float(self.apart[p]),
                    "low": float(self.apart[p] - half),
                    "high": float(self.apart[p] + half),
                }
            )
        return found

    def _missing(self, i: int) -> float:
        """What a value may lack, as it counts what was never shown as no clicks."""
        estimator, share = self.estimators[i], self.support[i]["support"][0]
        filled = estimator.normalised or estimator.DIRECT
        return 0.0 if filled or not share > 0 else self.value[i, 0] * (1.0 / share - 1.0)

    def table(self, rewards: Estimate | None = None) -> pd.DataFrame:
        """The rows: overall first, then the queries, the most frequent first.

        Beside the clicks the second ``rewards``, where the log has them.
        """
        target, patterns = self.values.target, self.values.logged.patterns
        own, second = self._figures(), {} if rewards is None else rewards._figures()
        rows = []
        for row in [0, *(1 + np.flatnonzero(self.used)).tolist()]:
            for i, e in enumerate(self.estimators):
                covered = self.weight * self.covered[i]
                serps = self.weight[row - 1] if row else covered.sum()
                difference, half = own["difference"][i, row], own["half"][i, row]
                rows.append(
                    {
                        "target": target.name,
                        "query": None if row == 0 else str(patterns.queries[row - 1]),
                        "estimator": str(e),
                        "positions": target.K,
                        **{name: own[name][i, row] for name in FIGURES},
                        **self._truth(i, row),
                        "worse": float(ndtr(-NORMAL * difference / half)),
                        "serps": int(serps),
                        "covered": float(self.covered[i, row - 1])
                        if row
                        else covered.sum() / self.weight.sum(),
                        **{name: column[row] for name, column in self.support[i].items()},
                        **{
                            f"reward_{name}".removesuffix("_value"): second[name][i, row]
                            if second
                            else np.nan
                            for name in FIGURES
                        },
                    }
                )
        return pd.DataFrame(rows).astype({"supported_positions": "Int32", "query": object})

    def _figures(self) -> dict[str, Floats]:
        """``FIGURES``, and half of the interval of the difference, (E, Q + 1)."""
        half, paired = self.half_widths()
        difference = self.value - self.logged
        columns = (
            self.value, self.value - half, self.value + half, self.logged,
            difference, difference - paired, difference + paired,
        )  # fmt: skip
        return {**dict(zip(FIGURES, columns, strict=True)), "half": paired}

    def _truth(self, i: int, row: int) -> dict[str, float]:
        """The clicks of a target that is a log, over the queries that the estimator covers."""
        clicks, noise = self.values.target.clicks, self.values.target.noise
        there = self.covered[i] & (self.weight > 0)
        if row:
            there = (self.weight > 0) & (np.arange(len(self.weight)) == row - 1)
        value = half = np.nan
        if clicks is not None and noise is not None and there.any():
            share = self.weight[there] / self.weight[there].sum()
            value = float(share @ clicks[there])
            half = NORMAL * float(np.sqrt(share**2 @ noise[there]))
        return {"truth": value, "truth_low": value - half, "truth_high": value + half}


def add_intervals(
    estimates: Sequence[Estimate],
    whole: Logged,
    fit: Callable[[Floats], dict[str, FittedModel]],
    rounds: int,
    refits: int,
    seed: int,
    quiet: bool,
) -> None:
    """What bootstrap rounds say, the same for all; some ``fit`` the click models again.

    ``whole`` is the log with whole lists, to which models are fitted.
    """
    short = estimates[0].values.logged
    assert short.fold is not None  # it is cut from the whole
    with Progress("bootstrap", rounds, "rounds", quiet) as progress:
        for W in resampled(short, rounds, seed):
            for each in estimates:
                each.add(W, each.predictions)
            progress.advance(W.shape[1])
    if not rounds or all(e.model is None for e in estimates[0].estimators):
        return
    with Progress("fit again", refits, "rounds", quiet) as progress:
        for W in resampled(whole, refits, seed):
            for b in range(W.shape[1]):
                weight = W[:, b].astype(np.float64)
                models = fit(weight)
                for each in estimates:
                    predictions = each.values.predictions(models)
                    each.add(short.fold @ weight[:, None], predictions, refitted=True)
                progress.advance(1)


@dataclass(frozen=True)
class Estimates(Stored):
    """What ``replay_estimate`` gives: rows in the schema ``schemas.ESTIMATES``, and facts."""

    TABLES: ClassVar = {"table": "estimates"}
    KEPT = ("facts", "contradictions", "predicting")

    table: pd.DataFrame
    facts: list[Fact] = field(default_factory=list)
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
        from logeval.reports.figures.models import plot_estimates

        return plot_estimates(self, ax)

    def verdict(self) -> Answer:
        """What each ranker would have earned, by the estimator to believe."""
        from logeval.reports.answers.replay import of_estimates

        return of_estimates(self)


def estimate(asked: ReplayEstimate, manifest: tables.Manifest) -> Estimates:
    """The clicks per SERP of all targets, estimated in the same resampled logs."""
    log, chosen = asked.opened, asked.chosen
    sources = [read_source(name, log, frame) for name, frame in asked.given.items()]
    if asked.inputs() != manifest["inputs"]:
        raise LogevalError("a target was replaced while it was read; run the command again")
    learned = any(is_learned(s.name) for s in sources)
    with_models = learned or any(e.needs is not None for e in chosen)
    whole, K = _read(log, sources, asked, None if with_models else asked.positions)
    targets = [bind(source, whole, K, asked.scope, asked.seed) for source in sources]
    facts = left_out(sources, targets, whole, asked)
    ranks_only = whole.placed or any(isinstance(t, MarginalTarget) for t in targets)
    candidates = CANDIDATES[:1] if ranks_only else CANDIDATES  # others need whole lists
    chosen, predicting = with_best_model(chosen, whole, asked.scope, asked.seed, candidates)
    models = partial(fit_models, chosen, whole, scope=asked.scope)
    short, fitted = cut(whole, K), models(whole.patterns.count)
    gains = [False] if whole.rewards is None else [False, True]
    found = [
        [Estimate.of(short, target, chosen, fitted, asked, rewards) for rewards in gains]
        for target in targets
    ]
    if not any(each.answered for each, *_ in found):
        raise found[0][0].refusal(log.path)
    add_intervals(
        [e for both in found for e in both],
        whole,
        models,
        asked.rounds,
        asked.refits,
        asked.seed,
        asked.quiet,
    )
    manifest["log_folder"], manifest["holds"] = str(log.path), log.holds
    if asked.wanted is None and asked.top_queries is None:
        manifest["log_queries"], manifest["log_serps"] = size_of(log)
    table = pd.concat([clicks.table(*second) for clicks, *second in found], ignore_index=True)
    manifest["names"] = log.names.of_queries(table["query"].dropna().unique()).kept()
    contradictions = [pair for e, *_ in found for pair in e.contradictions()]
    return Estimates(table, facts, contradictions, manifest, predicting)


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
        propensities=asked.logged_propensities, rewards=True,
    )  # fmt: skip
    longest = logged.patterns.K
    most = longest if logged.placed else MAX_POSITIONS
    K = positions or min(longest, most, shortest or most)
    if longest < K:
        raise LogevalError(f"positions={K}: the lists of the log have at most {longest} items")
    if shortest is not None and shortest < K:
        raise LogevalError(
            f"positions={K}: the target's lists have {shortest} items; ask for {shortest} or "
            "give longer lists"
        )
    return cut(logged, K) if logged.placed else logged, K


NAMED = 5  # queries, by name


def known_queries(log: Log, given: Iterable[Query]) -> list[Query]:
    """Those of the queries that the log has; an error if it has none."""
    asked = list(dict.fromkeys(given))
    with log.connect(holds=log.holds) as db:
        rows = db.execute(
            f"SELECT DISTINCT query_id, region_id FROM {rows_of(log)} "
            f"WHERE {sql_condition(asked)} ORDER BY ALL"
        ).fetchall()
    if not rows:
        raise LogevalError(
            f"{log.path}: the log has no SERPs of the queries of the target ({_few(asked)}); is it "
            "of another log?"
        )
    return [Query(*row) for row in rows]


def left_out(
    sources: Sequence[TargetSource],
    targets: Sequence[Target],
    logged: Logged,
    asked: ReplayEstimate,
) -> list[Fact]:
    """Of each target the queries without lists, and those that the log does not have."""
    known, facts = logged.patterns.queries, clicked_only(asked.opened)
    everything = asked.wanted is None and asked.top_queries is None
    for source, target in zip(sources, targets, strict=True):
        name, n = source.name, int((target.mass().sum(axis=1) > 0).sum())
        if source.table is None and source.patterns is None and n < len(known):
            K = {"K": target.K}
            facts.append(
                Fact("short-queries", name, "caution", len(known) - n, threshold=len(known), more=K)
            )
        if source.table is not None and everything:
            numbers = numbered_queries(source.table["query"], known)
            absent = [str(query) for query, places in numbers.items() if not places]
            if absent:
                few = {"queries": absent[:NAMED]}
                facts.append(
                    Fact(
                        "unknown-queries",
                        name,
                        "caution",
                        len(absent),
                        threshold=len(numbers),
                        more=few,
                    )
                )
        if source.patterns is not None and everything:
            own, there = source.patterns, set(known)
            lost = [q for q, query in enumerate(own.queries) if query not in there]
            if lost:
                share = {"share": float(own.serps[lost].sum() / own.serps.sum())}
                facts.append(
                    Fact(
                        "unknown-searches", name, "caution", len(lost), threshold=own.Q, more=share
                    )
                )
    return facts


def _left(code: str, about: str, n: int, of: int, **more: Any) -> Fact:
    return Fact(code, about, "caution", n, threshold=of, more=more)


def clicked_only(log: Log) -> list[Fact]:
    """That a log was selected by clicks, which no estimator here knows of."""
    share = expected_empty(log) if log.holds == "serps" else None
    return [] if share is None else [Fact("clicked-only", level="caution", value=share)]


def size_of(log: Log) -> tuple[int, int]:
    """How many queries and SERPs a log has."""
    with log.connect(holds=log.holds) as db:
        row = db.execute(
            f"SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM {rows_of(log)} "
            "GROUP BY query_id, region_id)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def _few(queries: Sequence[Query]) -> str:
    more = f" and {len(queries) - NAMED:,} more" if len(queries) > NAMED else ""
    return ", ".join(map(str, queries[:NAMED])) + more
