"""The plan of an experiment: effects, searches that are needed, and a bandit in their place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.planning.bandit import Ends, ahead_of_today, in_its_place, learned
from logeval.planning.effects import (
    AB,
    CREDIT,
    Effects,
    Pair,
    effects_of,
    mean_of,
    pairs_of,
    traffic_of,
)
from logeval.planning.power import Effect, power, searches_needed
from logeval.planning.rankers import impressions
from logeval.planning.rehearsal import Errors, is_chosen, rehearsed
from logeval.running.arrays import Floats
from logeval.running.progress import Progress
from logeval.storage.results import Stored
from logeval.storage.tables import Manifest
from logeval.tracks.fitted import FittedQuery, fitted_queries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.planning.plan import Plan
    from logeval.reports.answers.answer import Answer

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
        from logeval.reports.figures.plan import plot_power

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
