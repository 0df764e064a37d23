"""The plan of an experiment: effects, searches that are needed, and a bandit in their place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.users.mixture import Users
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.planning.bandit import in_its_place
from logeval.planning.interleaving import INTERLEAVINGS, Interleaved, Interleaving
from logeval.planning.moments import credit_moments, metric_moments
from logeval.planning.power import Effect, power, searches_needed
from logeval.planning.rankers import Shown, impressions, shown_by
from logeval.running.arrays import Floats
from logeval.running.progress import Progress
from logeval.running.seeds import generator
from logeval.storage.results import Stored
from logeval.storage.tables import Manifest
from logeval.tracks.fitted import FittedQuery, fitted_queries

if TYPE_CHECKING:
    from logeval.planning.plan import Plan

RARE = 100  # SERPs of the log that showed an item, below which little is known of it
# What is drawn of interleavings, spread over queries by their traffic: pairs of lists of rankers
# that show many, and lists of a probabilistic interleaving. A query has some at least.
PAIRS, LEAST_PAIRS = 8_000, 20
DRAWN, LEAST_DRAWN = 1_000_000, 500
POINTS = 61  # of the curve of power
AB = "A/B test"
CREDIT = "credit"


@dataclass(frozen=True)
class ExperimentPlan(Stored):
    """Effects and searches (schema ``schemas.PLAN``), power by searches (``schemas.POWER``)."""

    TABLES: ClassVar = {"table": "plan", "curve": "power"}
    KEPT = ("facts", "bandit")

    table: pd.DataFrame
    curve: pd.DataFrame
    facts: dict[str, Any]  # rankers, users, metric, their values, what was left out
    bandit: dict[str, Any] | None = None
    manifest: Manifest = field(default_factory=dict)

    def row(self, design: str, metric: str | None = None) -> pd.Series:
        """The row of a design; of an A/B test, that of the metric asked for."""
        wanted = metric or (self.facts["metric"] if design == AB else CREDIT)
        rows = self.table[(self.table["design"] == design) & (self.table["metric"] == wanted)]
        found: pd.Series = rows.iloc[0]
        return found


class Pair(NamedTuple):
    """What both rankers show for a query, and what interleavings make of it."""

    control: Shown
    treatment: Shown
    interleaved: tuple[Interleaved, ...]


def planned(asked: Plan, manifest: Manifest) -> ExperimentPlan:
    """The plan that is asked for."""
    fitted = asked.fitted.named(asked.model)
    metric = asked.metric or fitted.of(fitted.queries[0]).rewards[0]
    models = replace(asked.fitted, fitted={fitted.model: fitted}, periods=())
    queries = fitted_queries(models, asked.positions, metric, asked.wanted)
    pairs, left_out = _pairs(asked, queries, metric)
    kept = [f for f, pair in zip(queries, pairs, strict=True) if pair is not None]
    there = [pair for pair in pairs if pair is not None]
    if not there:
        raise LogevalError(
            f"{asked.control} and {asked.treatment} have no query in common; name other rankers, "
            "or lower positions"
        )
    traffic = traffic_of(kept, asked.traffic)
    draws = fitted.some_draws(asked.draws) if asked.draws and fitted.n_draws else []
    metrics = [metric, *(name for name in kept[0].model.rewards if name != metric)]
    by_draw = []
    with Progress("plan", 1 + len(draws), "draws", asked.quiet) as progress:
        for one in (fitted, *draws):
            by_draw.append(_effects(one, kept, there, traffic, metrics))
            progress.advance(1)
    table, curve = _tables(by_draw, asked.power, asked.level)
    values = _values(fitted, draws, kept, there, traffic, metric)
    facts: dict[str, Any] = {
        "control": str(asked.control), "treatment": str(asked.treatment), "metric": metric,
        "users": fitted.model, "positions": kept[0].K, "power": asked.power, "level": asked.level,
        "queries": len(kept), "draws": len(draws), "traffic": asked.traffic, **left_out,
        "covered": _covered(asked, kept, traffic), "control_value": values[0],
        "rare": _rare(asked.fitted, kept, there, traffic),
        "faults": (fitted.report.get("checks") or {}).get("faults"),
        "treatment_value": values[1], "log_folder": asked.fitted.manifest.get("log_folder"),
    }  # fmt: skip
    found = ExperimentPlan(table, curve, facts, None, manifest)
    n = found.row(AB)["searches"]
    bandit = None
    if asked.bandit is not None and n == n:
        control = np.array([_mean(f.model.users, p.control, metric) for f, p in
                            zip(kept, there, strict=True)])  # fmt: skip
        bandit = in_its_place(asked, models, kept, traffic, float(n), metric, control)
    return ExperimentPlan(table, curve, facts, bandit, manifest)


def traffic_of(queries: Sequence[FittedQuery], how: str) -> Floats:
    """The share of each query in the searches."""
    serps = np.array([f.serps for f in queries])
    if how == "equal" or np.isnan(serps).all():
        return np.full(len(serps), 1.0 / len(serps))
    serps = np.nan_to_num(serps)
    share: Floats = serps / serps.sum()
    return share


def _pairs(
    asked: Plan, queries: Sequence[FittedQuery], metric: str
) -> tuple[list[Pair | None], dict[str, Any]]:
    """What both rankers show; None for the queries that one of them does not have."""
    control, treatment = (
        shown_by(str(text), asked.fitted, queries, metric, asked.seed, asked.min_shown)
        for text in (asked.control, asked.treatment)
    )
    found: list[Pair | None] = []
    share = traffic_of(queries, asked.traffic)
    for f, a, b, part in zip(queries, control, treatment, share, strict=True):
        if a is None or b is None:
            found.append(None)
            continue
        rngs = [generator(asked.seed, "plan", way.name, f.query) for way in INTERLEAVINGS]
        mixed = [interleaved(way, a, b, rng, part) for way, rng in
                 zip(INTERLEAVINGS, rngs, strict=True)]  # fmt: skip
        found.append(Pair(a, b, tuple(mixed)))
    missing = [pair is None for pair in found]
    return found, {"left_out": sum(missing), "left_out_traffic": float(share[missing].sum())}


def interleaved(
    way: Interleaving, a: Shown, b: Shown, rng: np.random.Generator, share: float
) -> Interleaved:
    """The lists of an interleaving of two rankers, in rows, of a query with a share of traffic.

    Of many pairs of lists there are some, at even steps through both distributions.
    """
    pairs = max(math.ceil(PAIRS * share), LEAST_PAIRS)
    if len(a.p) * len(b.p) <= pairs:
        which = [(i, j, a.p[i] * b.p[j]) for i in range(len(a.p)) for j in range(len(b.p))]
    else:
        steps = (np.arange(pairs) + 0.5) / pairs
        first, second = (np.searchsorted(np.cumsum(one.p)[:-1], steps) for one in (a, b))
        mixed = zip(first, rng.permutation(second), strict=True)
        which = [(i, j, 1.0 / pairs) for i, j in mixed]
    n = math.ceil(max(DRAWN * share, LEAST_DRAWN) / len(which))
    parts = [(way.lists(a.A[i], b.A[j], rng, n), p) for i, j, p in which]
    return Interleaved(
        np.concatenate([one.A for one, _ in parts]),
        np.concatenate([one.credit for one, _ in parts]),
        np.concatenate([one.p * p for one, p in parts]),
    )


def _effects(
    fitted: FittedModel,
    queries: Sequence[FittedQuery],
    pairs: Sequence[Pair],
    traffic: Floats,
    metrics: Sequence[str],
) -> dict[tuple[str, str], Effect]:
    """The effect of each design and metric, on the users of a model."""
    users = [fitted.of(Query.of(f.query)).users for f in queries]
    found = {}
    for metric in metrics:
        arms = [
            np.array(
                [_moments(u, getattr(p, arm), metric) for u, p in zip(users, pairs, strict=True)]
            )
            for arm in ("control", "treatment")
        ]
        (a1, a2), (b1, b2) = (arm.T for arm in arms)
        found[AB, metric] = Effect.of_ab(traffic, (a1, a2), (b1, b2))
    for i, way in enumerate(INTERLEAVINGS):
        both = []
        for u, pair in zip(users, pairs, strict=True):
            A, credit, p = pair.interleaved[i]
            first, second = credit_moments(u, A, credit)
            both.append((p @ first, p @ second))
        first, second = np.array(both).T
        found[way.name, CREDIT] = Effect.of_interleaving(traffic, first, second)
    return found


def _moments(users: Users, shown: Shown, metric: str) -> tuple[float, float]:
    first, second = metric_moments(users, shown.A, metric)
    return float(shown.p @ first), float(shown.p @ second)


def _mean(users: Users, shown: Shown, metric: str) -> float:
    return _moments(users, shown, metric)[0]


def _values(
    fitted: FittedModel,
    draws: Sequence[FittedModel],
    queries: Sequence[FittedQuery],
    pairs: Sequence[Pair],
    traffic: Floats,
    metric: str,
) -> list[float]:
    """What a search of either ranker earns, on average over the draws."""
    found = []
    for one in draws or [fitted]:
        users = [one.of(Query.of(f.query)).users for f in queries]
        each = [
            [_mean(u, getattr(p, arm), metric) for u, p in zip(users, pairs, strict=True)]
            for arm in ("control", "treatment")
        ]
        found.append(np.array(each) @ traffic)
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]


def _tables(
    by_draw: Sequence[dict[tuple[str, str], Effect]], wanted: float, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fitted values come first, then the draws, which count where there are some."""
    rows, curves = [], []
    every = by_draw[1:] or by_draw
    for design, metric in by_draw[0]:
        effects = [draw[design, metric] for draw in every]
        mean = float(np.mean([one.mean for one in effects]))
        low, high = _interval([one.mean for one in effects])
        n = searches_needed(effects, wanted, level)
        rows.append(
            {
                "design": design, "metric": metric, "effect": mean, "low": low, "high": high,
                "sd": float(np.mean([one.sd for one in effects])),
                "searches": n if math.isfinite(n) else math.nan,
            }
        )  # fmt: skip
        curves.append((design, metric, effects, n))
    reach = max([n for *_, n in curves if math.isfinite(n)], default=1e6)
    first = min([n for *_, n in curves if math.isfinite(n)], default=10.0)
    steps = np.unique(np.ceil(np.geomspace(max(first / 10.0, 10.0), max(reach * 3.0, 30), POINTS)))
    curve = [
        {"design": design, "metric": metric, "searches": n, "power": p}
        for design, metric, effects, _ in curves
        for n, p in zip(steps.tolist(), power(effects, steps, level).tolist(), strict=True)
    ]
    return pd.DataFrame(rows), pd.DataFrame(curve)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and 1.96 standard deviations of the draws; nan without."""
    if len(values) < 2:
        return math.nan, math.nan
    mean, half = float(np.mean(values)), 1.96 * float(np.std(values, ddof=1))
    return mean - half, mean + half


def _covered(asked: Plan, queries: Sequence[FittedQuery], traffic: Floats) -> float:
    """The share of logged lists that the users can be shown; 1 where none is asked for."""
    if "logged" not in (str(asked.control), str(asked.treatment)):
        return 1.0
    return float(traffic @ [0.0 if f.ranker is None else f.ranker.covered for f in queries])


def _rare(
    models: FittedModels, queries: Sequence[FittedQuery], pairs: Sequence[Pair], traffic: Floats
) -> float | None:
    """The share of the treatment's results that the log rarely showed; None without its lists."""
    shares = []
    for f, pair in zip(queries, pairs, strict=True):
        shown = impressions(models, f)
        if shown is None:
            return None
        shares.append(float(pair.treatment.p @ (shown[pair.treatment.A] < RARE).mean(axis=1)))
    return float(traffic @ shares)
