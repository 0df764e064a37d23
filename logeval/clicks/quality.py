"""How well models predict held-out clicks.

log-likelihood            the mean over SERPs of the mean over ranks of ln P(c_k | c_<k)
perplexity at rank k      2^(-mean log2 P(c_k)), from marginal probabilities; and their mean
conditional perplexity    the same from P(c_k | c_<k)

Probabilities are kept above ``FLOOR``, since some models rule out what does happen (two clicks
in the cascade model); the share of such events is reported. Intervals are bootstraps over
SERPs, each weighted by Poisson(1); all models share the weights, so differences are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval import seeds
from logeval.arrays import Bools, Floats, Ints
from logeval.clicks.fitted import UNSEEN, Fitted
from logeval.clicks.patterns import Patterns

if TYPE_CHECKING:
    import pandas as pd

FLOOR = 1e-6
REPLICATES = 500
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
        return dict(zip(names, self.measures(self.count), strict=True)) | {
            "held_out_serps": int(self.count.sum())
        }

    def measures(self, weight: Floats) -> tuple[float, float, float]:
        """Log-likelihood, perplexity, conditional perplexity, with SERPs so weighted."""
        at_rank = self.at_ranks(weight)
        likelihood = self.log_likelihoods @ weight / weight.sum()
        return float(likelihood), float(at_rank[0].mean()), float(at_rank[1].mean())

    @property
    def log_likelihoods(self) -> Floats:
        """The log-likelihood of each pattern, averaged over its ranks."""
        return np.log(2) * self.conditional.sum(axis=1) / self.shown.sum(axis=1)

    def at_ranks(self, weight: Floats) -> Floats:
        """Perplexity and conditional perplexity at each rank shown, (2, K)."""
        serps = weight @ self.shown
        used = serps > 0
        sums = np.stack([weight @ self.marginal, weight @ self.conditional])[:, used]
        return np.exp2(-sums / serps[used])


def score_model(fitted: Fitted, data: Patterns) -> Score:
    """Score a model on patterns, which may have items and queries it has never seen."""
    marginal = np.zeros(data.items.shape)
    conditional = np.zeros(data.items.shape)
    shown = data.items >= 0
    unseen_items = unseen_queries = 0.0
    frequency = np.full(len(data.query), -1, dtype=np.int64)
    order = np.lexsort((data.length, data.query))
    key = data.query[order] * (data.K + 1) + data.length[order]
    cuts = np.flatnonzero(np.diff(key)) + 1
    for rows in np.split(order, cuts):
        query, K = data.queries[data.query[rows[0]]], int(data.length[rows[0]])
        model = fitted.of(query, unseen=True, K=K)
        ids = data.item_ids[data.items[rows, :K]]
        A = _local(model.items, ids)
        missing = model.items[A] == UNSEEN
        unseen_items += float(data.count[rows] @ missing.sum(axis=1))
        if query not in fitted.index:
            unseen_queries += float(data.count[rows].sum())
        else:
            serps = np.nan_to_num(fitted.serps[fitted.index[query]], nan=1.0)
            frequency[rows] = np.searchsorted(BINS, serps, side="right") - 1
        c = data.clicks[rows, :K]
        p, q = model.click_probs(A), model.conditional_click_probs(A, c)
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


def _local(items: Ints, ids: Ints) -> Ints:
    """Where each id is in ``items``; unknown ones at the stand-in, which is last."""
    order = np.argsort(items, kind="stable")
    at = order[np.minimum(np.searchsorted(items[order], ids), len(items) - 1)]
    return np.where(items[at] == ids, at, len(items) - 1)


def bins(score: Score) -> list[tuple[str, Bools]]:
    """The SERPs of each band of query frequency that occurs, and its name."""
    edges = [*BINS, None]
    out = [("unseen", score.frequency == -1)]
    for i, low in enumerate(BINS):
        high = edges[i + 1]
        name = f"{low}+" if high is None else f"{low}-{high - 1}"
        out.append((name, score.frequency == i))
    return [(name, rows) for name, rows in out if rows.any()]


def quality_table(
    scores: dict[str, Score], seed: int = 0, replicates: int = REPLICATES
) -> pd.DataFrame:
    """All measures of all models with intervals: overall, per rank, by query frequency; and
    each model's difference to the one with the best log-likelihood."""
    import pandas as pd

    any_score = next(iter(scores.values()))
    weights = poisson_weights(any_score.count, seed, replicates)
    rows: list[dict[str, Any]] = []
    overall = {}
    for name, score in scores.items():
        base = {"model": name, "serps": int(score.count.sum())}
        values = np.array([score.measures(w) for w in weights])
        overall[name] = values
        for m, measure in enumerate(MEASURES):
            rows.append({**base, "measure": measure, **_interval(values[:, m])})
        ranks = np.array([score.at_ranks(w) for w in weights])
        for k in range(ranks.shape[2]):
            for m, measure in enumerate(MEASURES[1:]):
                rows.append(
                    {**base, "measure": measure, "rank": k + 1, **_interval(ranks[:, m, k])}
                )
        for band, inside in bins(score):
            part = np.array([score.measures(w * inside) for w in weights if (w * inside).any()])
            count = int(score.count[inside].sum())
            for m, measure in enumerate(MEASURES):
                row = {**base, "measure": measure, "frequency": band, "serps": count}
                rows.append({**row, **_interval(part[:, m])})
    best = max(scores, key=lambda name: overall[name][0, 0])
    for name in scores:
        if name != best:
            for m, measure in enumerate(MEASURES):
                change = overall[name][:, m] - overall[best][:, m]
                row = {"model": name, "baseline": best, "measure": measure}
                rows.append({**row, "serps": int(any_score.count.sum()), **_interval(change)})
    columns = ["model", "baseline", "measure", "rank", "frequency", "serps", "value", "low", "high"]
    table = pd.DataFrame(rows).reindex(columns=columns)
    return table.astype({"rank": "Int64"})


def poisson_weights(count: Floats, seed: int, replicates: int) -> Floats:
    """Weights of the patterns: as they are, then ``replicates`` bootstrap samples of SERPs."""
    rng = seeds.generator(seed, "quality", "bootstrap")
    return np.concatenate([count[None], rng.poisson(count, (replicates, len(count)))])


def _interval(values: Floats) -> dict[str, float]:
    """The first value, and the central 95% of the others."""
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return {"value": float(values[0]), "low": float(low), "high": float(high)}
