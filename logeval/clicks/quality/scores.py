"""How well models predict held-out clicks.

log-likelihood            the mean over SERPs of the mean over ranks of ln P(c_k | c_<k)
perplexity at rank k      2^(-mean log2 P(c_k)), from marginal probabilities; and their mean
conditional perplexity    the same from P(c_k | c_<k)

Probabilities are kept above ``FLOOR``, since some models rule out what does happen (two clicks
in the cascade model); the share of such events is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints, place_of

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
