"""How well models predict held-out clicks.

log-likelihood            the mean over SERPs of the mean over ranks of ln P(c_k | c_<k)
perplexity at rank k      2^(-mean log2 P(c_k)), from marginal probabilities; and their mean
conditional perplexity    the same from P(c_k | c_<k)

Probabilities are kept above ``FLOOR``, since some models rule out what does happen (two clicks
in the cascade model); the share of such events is reported.

Which fits of click models a log cannot tell apart, by how well they predict held-out SERPs.

Two fits are compared on the same SERPs: d is the difference of their log-likelihoods per result,
SERP by SERP. The one with the lower mean is told apart from the other if the 95% interval of the
mean of d leaves 0 out, and the mean is more than ``EQUAL``: a twentieth of what lies between the
models themselves on real SERPs, none of which is the truth. What is not told apart from the best
may be as right as it, and a verdict should hold on all of it.

What scores of several click models on the same SERPs say of them, side by side.

Intervals are bootstraps over SERPs, each weighted by Poisson(1). All models meet the same
weights, so the differences between them are paired. The weights are drawn for a block of
patterns at a time, so memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.registry import AUTO, MODELS
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, place_of
from logeval.running.words import joined
from logeval.storage.results import Stored
from logeval.storage.schemas import QUALITY
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from logeval.clicks.collection import FittedModels

FLOOR = 1e-6
BINS = (1, 10, 100, 1000, 10_000)  # SERPs of a query in the training part
MEASURES = ("log-likelihood", "perplexity", "conditional-perplexity")


@dataclass(frozen=True)
class Score:
    """The log-probabilities of one model, per pattern and rank."""

    marginal: Floats  # (P, K) log2 P(c_k)
    conditional: Floats  # (P, K) log2 P(c_k | c_<k)
    shown: Bools  # (P, K)
    count: Floats  # (P,)
    frequency: Ints  # (P,) index into BINS, -1 for a query never seen
    impossible: float  # share of (SERP, rank)s whose probability was below the floor
    unseen_items: float  # share of impressions of items never seen
    unseen_queries: float  # share of SERPs of queries never seen

    def headline(self) -> dict[str, float]:
        """The three measures over all SERPs and ranks."""
        names = [m.replace("-", "_") for m in MEASURES]
        values = measures(self.count @ self.columns())
        return dict(zip(names, values.tolist(), strict=True)) | {
            "held_out_serps": int(self.count.sum())
        }

    def columns(self) -> Floats:
        """What each SERP adds to the sums that ``measures`` needs, (P, 2 + 3 K)."""
        likelihood = np.log(2) * self.conditional.sum(axis=1) / self.shown.sum(axis=1)
        one = np.ones(len(self.count))
        parts = [np.stack([one, likelihood], axis=1), self.shown, self.marginal, self.conditional]
        return np.concatenate(parts, axis=1)


def measures(sums: Floats) -> Floats:
    """Log-likelihood, perplexity and conditional perplexity from sums of ``Score.columns``."""
    ranks = at_ranks(sums)
    used = np.isfinite(ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(used, ranks, 0.0).sum(axis=-1) / used.sum(axis=-1)
        return np.stack([sums[..., 1] / sums[..., 0], *mean], axis=-1)


def at_ranks(sums: Floats) -> Floats:
    """Perplexity and conditional perplexity at each rank, (2, ..., K); nan where none is shown."""
    serps, marginal, conditional = np.split(sums[..., 2:], 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.exp2(-np.stack([marginal, conditional]) / np.where(serps > 0, serps, np.nan))


def score_model(fitted: FittedModel, data: Patterns) -> Score:
    """Score a model on patterns, which may have items and queries it has never seen."""
    marginal = np.zeros(data.items.shape)
    conditional = np.zeros(data.items.shape)
    shown = data.items >= 0
    unseen_items = unseen_queries = 0.0
    frequency = np.full(len(data.query), -1, dtype=np.int64)
    for query, K, rows in alike(data):
        model = fitted.of(query, unseen=True, K=K)
        ids = data.item_ids[data.items[rows, :K]]
        A = local_items(model.items, ids)
        missing = A == model.L - 1  # the stand-in
        unseen_items += float(data.count[rows] @ missing.sum(axis=1))
        if query not in fitted.index:
            unseen_queries += float(data.count[rows].sum())
        else:
            serps = np.nan_to_num(fitted.serps[fitted.index[query]], nan=1.0)
            frequency[rows] = np.searchsorted(BINS, serps, side="right") - 1
        c = data.clicks[rows, :K]
        p, q = model.click_probs_of_rows(A), model.conditional_click_probs(A, c)
        marginal[rows, :K] = np.where(c, p, 1 - p)
        conditional[rows, :K] = np.where(c, q, 1 - q)
    impossible = float(data.count @ (shown & (conditional < FLOOR)).sum(axis=1))
    impressions = float(data.count @ data.length)
    for p in (marginal, conditional):
        p[shown] = np.log2(np.maximum(p[shown], FLOOR))
    return Score(
        marginal,
        conditional,
        shown,
        data.count,
        frequency,
        impossible / impressions,
        unseen_items / impressions,
        unseen_queries / float(data.count.sum()),
    )


def log_likelihoods(fitted: FittedModel, data: Patterns) -> Floats:
    """ln P(clicks) of each pattern, (P,)."""
    found: Floats = np.log(2.0) * score_model(fitted, data).conditional.sum(axis=1)
    return found


def alike(data: Patterns) -> Iterator[tuple[Query, int, Ints]]:
    """The patterns of each query and length of lists."""
    order = np.lexsort((data.length, data.query))
    key = data.query[order] * (data.K + 1) + data.length[order]
    for rows in np.split(order, np.flatnonzero(np.diff(key)) + 1):
        yield data.queries[data.query[rows[0]]], int(data.length[rows[0]]), rows


def local_items(items: Ints, ids: Ints) -> Ints:
    """Where each id is in ``items``; unknown ones at the stand-in, which is last."""
    at = place_of(ids, items)
    return np.where(at < 0, len(items) - 1, at)


Z = 1.959963984540054
EQUAL = 0.001  # log-likelihood per result
PAPERS = ("DCM", "PBM")  # the papers' simulators, which are always among the chosen
IN_CLASSES = ("DCM", "PBM", "UBM", "Choice")  # tried with classes of users as well
MOST = 3  # of those that predict equally well, beside the papers'
Fitted = tuple[FittedModel, Score]


def log_likelihood(score: Score) -> tuple[Floats, Floats]:
    """Of each pattern, the mean over ranks of ln P(c_k | c_<k), and its number of SERPs."""
    return np.log(2.0) * score.conditional.sum(axis=1) / score.shown.sum(axis=1), score.count


def told_apart(best: Score, other: Score) -> bool:
    """Whether the other one predicts worse, by more than chance."""
    (a, count), (b, _) = log_likelihood(best), log_likelihood(other)
    n, d = float(count.sum()), a - b
    mean = float(count @ d) / n
    variance = float(count @ (d - mean) ** 2) / max(n - 1.0, 1.0)
    return mean > max(Z * np.sqrt(variance / n), EQUAL)


def as_good(found: dict[str, Fitted]) -> list[str]:
    """The names that cannot be told apart from the best, the best first."""
    means = {name: score.headline()["log_likelihood"] for name, (_, score) in found.items()}
    order = sorted(means, key=lambda name: -means[name])
    best = found[order[0]][1]
    return [name for name in order if name == order[0] or not told_apart(best, found[name][1])]


def chosen(found: dict[str, Fitted]) -> tuple[list[str], str]:
    """Of all models, those that predict best and the papers', and why, in words."""
    equal = as_good(found)
    best = found[equal[0]][1].headline()
    names = list(dict.fromkeys([*equal[:MOST], *(n for n in PAPERS if n in found)]))
    why = (
        f"{equal[0]} predicts the {best['held_out_serps']:,} held-out SERPs best (log-likelihood "
        f"per result {best['log_likelihood']:.4f})"
    )
    if len(equal) > 1:
        why += f"; {joined(equal[1:])} cannot be told apart from it"
    others = [name for name in names if name not in equal]
    if others:
        values = [f"{n} {found[n][1].headline()['log_likelihood']:.4f}" for n in others]
        why += f"; {joined(values)} beside it, as in the papers"
    return names, why


def candidates(models: Sequence[str]) -> list[str]:
    """What is fitted: for ``auto`` every model, and some with classes of users."""
    classes = [f"{name}(classes=auto)" for name in IN_CLASSES]
    return [*MODELS, *classes] if AUTO in models else list(models)


HELD_OUT = "held-out SERPs"
REPLICATES = 500  # of the bootstrap
BLOCK = 20_000  # patterns
ALL = "all"


@dataclass(frozen=True)
class Comparison(Stored):
    """Qualities (schema ``schemas.QUALITY``), and what was unseen or impossible by model."""

    TABLES: ClassVar = {"table": "quality"}
    KEPT = ("unseen", "scored_on")

    table: pd.DataFrame
    unseen: list[dict[str, Any]]  # by model
    scored_on: str = HELD_OUT  # which SERPs
    manifest: Manifest = field(default_factory=dict)

    @property
    def coverage(self) -> pd.DataFrame:
        """One row per model: SERPs, and what of them was unseen or impossible."""
        import pandas as pd

        return pd.DataFrame(self.unseen)

    def overall(self) -> pd.DataFrame:
        """One row per model: each measure over everything, the best log-likelihood first."""
        table = self.table
        rows = table[table["baseline"].isna() & table["rank"].isna() & table["frequency"].isna()]
        wide = rows.pivot_table(index="model", columns="measure", values=["value", "low", "high"])
        wide = wide.sort_values(("value", MEASURES[0]), ascending=False)
        return wide[[(v, m) for m in MEASURES for v in ("value", "low", "high")]]

    def by_frequency(self, measure: str = MEASURES[0]) -> pd.DataFrame:
        """One row per model, one column per band of query frequency."""
        rows = self.table[self.table["frequency"].notna() & (self.table["measure"] == measure)]
        return rows.pivot_table(index="model", columns="frequency", values="value", sort=False)

    def plot(self, measure: str = "perplexity", ax: Axes | None = None) -> Axes:
        """Perplexity by rank of each model (or another measure), with intervals."""
        from logeval.reports.figures.models import plot_perplexity

        return plot_perplexity(self, measure, ax)

    def plot_differences(self, measure: str = "log-likelihood", ax: Axes | None = None) -> Axes:
        """How far each model is from the best one, with paired 95% intervals."""
        from logeval.reports.figures.models import plot_differences

        return plot_differences(self, measure, ax)


def compared(
    scores: dict[str, Score], seed: int, manifest: Manifest, scored_on: str = HELD_OUT
) -> Comparison:
    """The scores side by side."""
    unseen = [
        {
            "model": name,
            "serps": int(s.count.sum()),
            "unseen_items": s.unseen_items,
            "unseen_queries": s.unseen_queries,
            "impossible": s.impossible,
        }
        for name, s in scores.items()
    ]
    return Comparison(_quality_table(scores, seed), unseen, scored_on, manifest)


def scored_on(models: FittedModels, log: Log) -> str:
    """Whether the models have seen the log before."""
    if models.manifest.get("inputs") == [{"log": log.identity}]:
        part = "partly " if models.manifest["arguments"].get("holdout") else ""
        return f"the log that the models were {part}fitted to, not held out"
    return f"all SERPs of {log.path}"


def _quality_table(scores: dict[str, Score], seed: int) -> pd.DataFrame:
    """All measures of all models: overall, per rank, by query frequency; and the difference of
    each model to the one with the best log-likelihood."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    overall = {}
    serps = {
        band: int(s.count[inside].sum()) for s in scores.values() for band, inside in _bands(s)
    }
    for name, sums in _bootstrap_sums(scores, seed).items():
        for band, band_sums in sums.items():
            base = {"model": name, "serps": serps[band]}
            if band != ALL:
                base["frequency"] = band
            values = measures(band_sums)
            for measure, value in zip(MEASURES, values.T, strict=True):
                rows.append({**base, "measure": measure, **_interval(value)})
            if band == ALL:
                overall[name] = values
                for measure, ranks in zip(MEASURES[1:], at_ranks(band_sums), strict=True):
                    for k, value in enumerate(ranks.T):
                        rows.append({**base, "measure": measure, "rank": k + 1, **_interval(value)})
    best = max(scores, key=lambda name: overall[name][0, 0])
    for name in scores:
        if name != best:
            change = overall[name] - overall[best]
            base = {"model": name, "baseline": best, "serps": serps[ALL]}
            for measure, value in zip(MEASURES, change.T, strict=True):
                rows.append({**base, "measure": measure, **_interval(value)})
    return pd.DataFrame(rows).reindex(columns=QUALITY.names).astype({"rank": "Int64"})


def _bands(score: Score) -> list[tuple[str, Bools]]:
    """All SERPs, and those of each band of query frequency that occurs."""
    out = [(ALL, np.ones(len(score.count), dtype=np.bool_)), ("unseen", score.frequency == -1)]
    for i, low in enumerate(BINS):
        name = f"{low}-{BINS[i + 1] - 1}" if i + 1 < len(BINS) else f"{low}+"
        out.append((name, score.frequency == i))
    return [(name, inside) for name, inside in out if inside.any()]


def _bootstrap_sums(scores: dict[str, Score], seed: int) -> dict[str, dict[str, Floats]]:
    """Sums of ``Score.columns`` by model and band: as they are, then of each replicate."""
    sums: dict[str, dict[str, Floats]] = {name: {} for name in scores}
    columns = {name: score.columns() for name, score in scores.items()}
    count = next(iter(scores.values())).count
    for block, start in enumerate(range(0, len(count), BLOCK)):
        rows = slice(start, start + BLOCK)
        rng = seeds.generator(seed, "quality", "bootstrap", block)
        drawn = rng.poisson(count[rows], (REPLICATES, len(count[rows])))
        weights = np.concatenate([count[rows][None], drawn])
        for name, score in scores.items():
            for band, inside in _bands(score):
                part = (weights * inside[rows]) @ columns[name][rows]
                sums[name][band] = sums[name].get(band, 0.0) + part
    return sums


def _interval(values: Floats) -> dict[str, float]:
    """The first value, and the central 95% of the others."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return {"value": float(values[0]), "low": float(low), "high": float(high)}
