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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.registry import AUTO, MODELS, model_names
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints, place_of
from logeval.running.names import parse_call
from logeval.running.words import joined

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
IN_CLASSES = ("DCM", "PBM", "UBM")  # tried with classes of users as well
MOST = 3  # of those that predict equally well, beside the papers'
# what else a model could have been fitted with
ALTERNATIVES = ("scope=per-query", "scope=pooled", "scope=per-query,smoothing=none")
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


def other_fits(name: str) -> list[str]:
    """What else a model could have been fitted with.

    Models with classes of users have none: each would take as long as all others together.
    """
    base, given = parse_call(name)
    if "classes" in given:
        return []
    own = [f"{key}={value}" for key, value in given.items()]
    return model_names([f"{base}({','.join([more, *own])})" for more in ALTERNATIVES])


def alternatives(name: str, fit: Callable[[str], Fitted], own: Fitted) -> dict[str, Fitted]:
    """Other fits of a model that predict as well as the best of its fits; its own is always one."""
    found = {name: own} | {other: fit(other) for other in other_fits(name)}
    kept = as_good(found)
    return {key: value for key, value in found.items() if key == name or key in kept}


def candidates(models: Sequence[str]) -> list[str]:
    """What is fitted: for ``auto`` every model, and some with classes of users."""
    classes = [f"{name}(classes=auto)" for name in IN_CLASSES]
    return [*MODELS, *classes] if AUTO in models else list(models)
