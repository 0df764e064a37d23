"""A bandit ahead of today's ranker, and what it would earn and cost in the place of a test.

The plan of an experiment: effects, searches that are needed, and a bandit in their place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.log.queries import Query
from logeval.planning.effects import (
    AB,
    CREDIT,
    Effects,
    Errors,
    Pair,
    effects_of,
    is_chosen,
    mean_of,
    pairs_of,
    rehearsed,
    traffic_of,
)
from logeval.planning.power import Effect, power, searches_needed
from logeval.planning.rankers import AFTER, RUNS_AFTER, impressions
from logeval.running.arrays import Floats
from logeval.running.progress import Progress
from logeval.storage.results import Stored
from logeval.storage.tables import Manifest
from logeval.tracks.fitted import FittedQuery, fitted_queries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.planning.plan import Plan
    from logeval.reports.answers.checks import Answer


RUNS = 4
STEPS = 20  # parts of the traffic, after which is counted
MOST = 200_000  # searches of a query; with more traffic, this much of it


class Ends(NamedTuple):
    """A difference with its 95% interval."""

    mean: float
    low: float
    high: float


def learned(rankers: Sequence[str]) -> str | None:
    """The policy after some steps that is compared with today's ranker, if this is the question."""
    others = [ranker for ranker in rankers if ranker != "logged"]
    return others[0] if len(others) == 1 and AFTER.fullmatch(others[0]) else None


def ahead_of_today(
    asked: Plan,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    traffic: Floats,
    metric: str,
    text: str,
    draws: int,
) -> Ends:
    """What the verdict of ``evaluate`` says of the policy at the end of its steps, by the traffic.

    On every draw it learns from the users that judge it, as it would from those of the log.
    """
    policy, _, steps = text.rpartition("@")
    runs = evaluate(
        models,
        policies=[policy],
        horizon=int(steps),
        draws=draws,
        runs=1 if draws else RUNS_AFTER,
        positions=queries[0].K,
        queries=[Query.of(f.query) for f in queries],
        reward=metric,
        seed=asked.seed,
        quiet=asked.quiet,
    )
    share = dict(zip((f.query for f in queries), traffic.tolist(), strict=True))
    row = runs.against_ranker(traffic=share).iloc[0]
    ahead, *ends = (float(row[name]) for name in ("ahead", "ahead_low", "ahead_high"))
    low, high = ends if draws else (math.nan, math.nan)  # of what the log leaves open
    return Ends(ahead, low, high) if text == str(asked.treatment) else Ends(-ahead, -high, -low)


def in_its_place(
    asked: Plan,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    traffic: Floats,
    n: float,
    metric: str,
    control: Floats,
) -> dict[str, Any]:
    """Earnings above those of the control ranker (Q,) on all searches, in units of the metric.

    Each query has its share of the traffic, from the first search to the last at an even pace.
    """
    n = min(n, MOST / traffic.max())
    ends = np.maximum(np.ceil(n * traffic), 1).astype(int)  # searches of each query
    at = np.maximum(np.ceil(np.outer(ends, np.arange(1, STEPS + 1) / STEPS)), 1).astype(int)
    runs = evaluate(
        models,
        policies=[asked.bandit or ""],
        horizon=int(ends.max()),
        checkpoints=np.unique(at).tolist(),
        runs=RUNS,
        positions=queries[0].K,
        queries=[Query.of(f.query) for f in queries],  # by their ids, not names
        reward=metric,
        seed=asked.seed,
        quiet=asked.quiet,
    ).table()
    earned = np.zeros((RUNS, STEPS))
    for q, f in enumerate(queries):
        mine = runs[runs["query"] == f.query].pivot(index="run", columns="t", values="reward")
        earned += mine[at[q].tolist()].to_numpy() - at[q] * control[q]
    ahead = earned.mean(axis=0)
    return {
        "policy": str(runs["policy"].iloc[0]),
        "searches": int(ends.sum()),
        "earned": float(ahead[-1]),
        "stderr": float(earned[:, -1].std(ddof=1) / np.sqrt(RUNS)),
        "lowest": float(min(ahead.min(), 0.0)),
        "lowest_at": int(n * (int(ahead.argmin()) + 1) / STEPS) if ahead.min() < 0 else 0,
    }


RARE = 100  # SERPs of the log that showed an item, below which little is known of it
EFFORT = 0.1  # of what is drawn of interleavings, where draws of the users differ by far more
NORMAL = 1.96
POINTS = 61  # of the curve of power


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

    def plot(self, ax: Axes | None = None) -> Axes:
        """The probability to find the difference, by searches."""
        from logeval.reports.figures.models import plot_power

        return plot_power(self, ax)

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.plan import verdict

        return verdict(self)


def planned(asked: Plan, manifest: Manifest) -> ExperimentPlan:
    """The plan that is asked for."""
    fitted = asked.fitted.named(asked.model)
    metric = asked.metric or fitted.of(fitted.queries[0]).rewards[0]
    models = replace(asked.fitted, fitted={fitted.model: fitted}, periods=())
    queries = fitted_queries(models, asked.positions, metric, asked.wanted)
    draws = fitted.some_draws(asked.draws) if asked.draws and fitted.n_draws else []
    effort = EFFORT if draws else 1.0
    pairs, left_out = pairs_of(asked, asked.fitted, queries, metric, effort)
    kept = [f for f, pair in zip(queries, pairs, strict=True) if pair is not None]
    there = [pair for pair in pairs if pair is not None]
    if not there:
        raise LogevalError(
            f"{asked.control} and {asked.treatment} have no query in common; name other rankers, "
            "or lower positions"
        )
    traffic = traffic_of(kept, asked.traffic)
    metrics = [metric, *(name for name in kept[0].model.rewards if name != metric)]
    by_draw = []
    with Progress("plan", 1 + len(draws), "draws", asked.quiet) as progress:
        for one in (fitted, *draws):
            users = [one.of(Query.of(f.query)).users for f in kept]
            by_draw.append(effects_of(users, there, traffic, metrics))
            progress.advance(1)
    rankers = (str(asked.control), str(asked.treatment))
    bandit_after = learned(rankers)
    errors = {} if bandit_after else rehearsed(asked, fitted, metrics, kept)
    ends = {
        (AB, name): ahead_of_today(asked, models, kept, traffic, name, after, len(draws))
        for after in filter(None, [bandit_after])
        for name in metrics
    }
    table, curve = _tables(by_draw, errors, ends, asked.power, asked.level)
    value = _control_value(draws or [fitted], kept, there, traffic, metric)
    facts: dict[str, Any] = {
        "control": rankers[0], "treatment": rankers[1], "metric": metric,
        "chosen": [one for one in rankers if is_chosen(one) and one != bandit_after],
        "rehearsals": asked.rehearsals if errors else 0,
        "users": fitted.model, "positions": kept[0].K, "power": asked.power, "level": asked.level,
        "queries": len(kept), "draws": len(draws), "traffic": asked.traffic, **left_out,
        "covered": _covered(asked, kept, traffic), "control_value": value,
        "rare": _rare(asked.fitted, kept, there, traffic),
        "faults": (fitted.report.get("checks") or {}).get("faults"),
        "treatment_value": value + float(table["effect"].iloc[0]),
        "log_folder": asked.fitted.manifest.get("log_folder"),
    }  # fmt: skip
    found = ExperimentPlan(table, curve, facts, None, manifest)
    n = found.row(AB)["searches"]
    bandit = None
    if asked.bandit is not None and n == n:
        control = np.array([mean_of(f.model.users, p.control, metric) for f, p in
                            zip(kept, there, strict=True)])  # fmt: skip
        bandit = in_its_place(asked, models, kept, traffic, float(n), metric, control)
    return ExperimentPlan(table, curve, facts, bandit, manifest)


def _control_value(
    users: Sequence[FittedModel],
    queries: Sequence[FittedQuery],
    pairs: Sequence[Pair],
    traffic: Floats,
    metric: str,
) -> float:
    """What a search of the control ranker earns, on average over the draws."""
    each = [
        [
            mean_of(one.of(Query.of(f.query)).users, pair.control, metric)
            for f, pair in zip(queries, pairs, strict=True)
        ]
        for one in users
    ]
    return float((np.array(each) @ traffic).mean())


def _tables(
    by_draw: Sequence[Effects],
    errors: Errors,
    ends: Mapping[tuple[str, str], Ends],
    wanted: float,
    level: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fitted values come first, then the draws, which count where there are some."""
    rows, curves = [], []
    every = by_draw[1:] or by_draw
    for design, metric in by_draw[0]:
        error = errors.get((design, metric))
        effects = corrected([draw[design, metric] for draw in every], error)
        mean = float(np.mean([one.mean for one in effects]))
        low, high = interval_of(effects, None if error is None else len(error))
        if found := ends.get((design, metric)):
            effects = as_evaluated(effects, found)
            mean, low, high = found
        n = searches_needed(effects, wanted, level)
        rows.append(
            {
                "design": design, "metric": metric, "effect": mean, "low": low, "high": high,
                "sd": float(np.mean([one.sd for one in effects])),
                "searches": n if math.isfinite(n) else math.nan,
                "flattered": math.nan if error is None else float(error.mean()),
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


def as_evaluated(effects: Sequence[Effect], row: Ends) -> list[Effect]:
    """The effects of the draws with the mean and the spread that ``evaluate`` finds."""
    means = np.array([one.mean for one in effects])
    own = means.std(ddof=1) if len(means) > 1 else 0.0
    wide = (row.high - row.low) / (2.0 * NORMAL) / own if own > 0.0 else 0.0
    found = row.mean + (means - means.mean()) * wide
    return [one._replace(mean=float(mean)) for one, mean in zip(effects, found, strict=True)]


def corrected(effects: Sequence[Effect], errors: Floats | None) -> list[Effect]:
    """The effects of the draws without the bias of rehearsals, with the spread of their errors."""
    if errors is None:
        return list(effects)
    means = np.array([one.mean for one in effects])
    spread, own = errors.std(ddof=1) * math.sqrt(1.0 + 1.0 / len(errors)), means.std(ddof=1)
    away = (means - means.mean()) * (spread / own if own > 0.0 else 0.0)
    found = means.mean() - errors.mean() + away
    return [one._replace(mean=float(mean)) for one, mean in zip(effects, found, strict=True)]


def interval_of(effects: Sequence[Effect], rehearsals: int | None) -> tuple[float, float]:
    """Mean and 1.96 standard deviations; Student's quantile of so many rehearsals; nan without."""
    if len(effects) < 2:
        return math.nan, math.nan
    means = [one.mean for one in effects]
    wide = NORMAL if rehearsals is None else float(stdtrit(rehearsals - 1, 0.975))
    mean, half = float(np.mean(means)), wide * float(np.std(means, ddof=1))
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
