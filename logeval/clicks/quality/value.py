"""Does a model know which list earns more? Held-out clicks, regressed on what it predicts.

Of every search x are the clicks that a model predicts for its list, not having seen those that it
is compared with, and y those observed, both minus their means over all searches of the query (that
show as many results). The slope b = sum x y / sum x^2 is 1 for a model that is right, whatever its
noise; at 0.5 the predicted differences between lists come out half as large. Models may be right on
single results and wrong on whole lists, so there are ``LEVELS``.

The interval takes the queries of the log as they are, and their searches as independent: with
a = sum x y and c = sum x^2 of a search, V_q = sum (a - b c)^2 is the variance of query q's sum.
Where queries differ by more than that (Cochran's Q, at 5%), it has their variance tau^2 in it
(DerSimonian and Laird, 1986), and Student's quantile:

    variance of b = sum_q s_q^2 (V_q / c_q^2 + tau^2),    c_q = sum x^2 of q, s_q = c_q / sum c.

The model's own errors are random, too. Of a model fitted to n searches of q and compared with m,
they add m / n to V_q, at most. Where both halves of the searches predict each other
(``cross_fitted``) they cancel, to first order. ``benchmarks/value.py`` has the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, stdtrit

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.scores import alike, local_items
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats

LEVELS = ("result", "first-three", "list", "any-click")
WIDE = 1.0  # an interval as wide cannot tell a slope of 0 from one of 1
NONE = 1e-9  # sum x^2 of lists that are predicted to earn the same
ALPHA = 0.05


@dataclass(frozen=True)
class Slope:
    """The slope of a level, with its 95% interval; nan where lists do not differ."""

    level: str
    slope: float
    low: float
    high: float
    lists: int
    queries: int

    @property
    def passes(self) -> bool | None:
        """Whether the interval holds 1; None where it is too wide to tell."""
        if not self.high - self.low <= WIDE:
            return None
        return self.low <= 1.0 <= self.high

    def row(self) -> dict[str, Any]:
        """For JSON: None for nan."""
        return {k: None if x != x else x for k, x in asdict(self).items()}


def slopes_of(report: Mapping[str, Any]) -> list[Slope]:
    """Those that the report of a fit keeps; none of models that came without a log."""
    rows = report.get("value", ())
    filled: list[dict[str, Any]] = [
        {key: math.nan if x is None else x for key, x in row.items()} for row in rows
    ]
    return [Slope(**row) for row in filled]


def of_list(found: list[Slope]) -> Slope | None:
    """That of whole lists, by which a model is judged."""
    return next((one for one in found if one.level == "list"), None)


def slopes(fitted: FittedModel, test: Patterns) -> list[Slope]:
    """The slopes of a model, level by level, on SERPs that it was not fitted to."""
    sums, n = moments(fitted, test), np.full(test.Q, np.inf)
    for q, query in enumerate(test.queries):
        if query in fitted.index:
            n[q] = np.nan_to_num(fitted.serps[fitted.index[query]], nan=np.inf)
    more = 1.0 + test.serps / np.maximum(n, 1.0)
    return _slopes(sums, more, test.only(set(fitted.queries)))


def cross_fitted(
    fit: Callable[[Patterns], FittedModel], data: Patterns, folds: int = 2, seed: int = 0
) -> list[Slope]:
    """The same where nothing is held out: each part is predicted by a fit to the others.

    The searches are dealt to the parts at random.
    """
    rng = seeds.generator(seed, "value", "folds")
    dealt = rng.multinomial(data.count.astype(np.int64), np.full(folds, 1 / folds)).T.astype(float)
    sums = np.zeros((len(LEVELS), data.Q, 5))
    for n in dealt:
        if (rest := data.count - n).any() and n.any():
            model = fit(data.weighted(rest).take(rest > 0))
            sums += moments(model, data.weighted(n).take(n > 0))
    return _slopes(sums, np.ones(data.Q), data)


def moments(fitted: FittedModel, data: Patterns) -> Floats:
    """Sums over searches of c, a, a^2, a c and c^2, (levels, Q, 5); 0 for queries not fitted."""
    out = np.zeros((len(LEVELS), data.Q, 5))
    number = {query: q for q, query in enumerate(data.queries)}
    for query, K, rows in alike(data):
        if query not in fitted.index:
            continue
        model, n = fitted.of(query, unseen=True, K=K), data.count[rows]
        shown, row = np.unique(data.items[rows, :K], axis=0, return_inverse=True)
        expected = predicted(model, local_items(model.items, data.item_ids[shown]))
        clicked = observed(data.clicks[rows, :K])
        for level, (x, y) in enumerate(zip(expected, clicked, strict=True)):
            out[level, number[query]] += sums(x[row.ravel()], y, n)
    return out


def sums(x: Floats, y: Floats, n: Floats) -> Floats:
    """Of searches (P, C) that were seen ``n`` times: sums of c, a, a^2, a c and c^2."""
    x, y = (v - np.average(v, weights=n, axis=0).mean() for v in (x, y))
    a, c = (x * y).sum(axis=1), (x * x).sum(axis=1)
    return np.array([n @ one for one in (c, a, a * a, a * c, c * c)])


def predicted(model: ClickModel, A: Floats) -> list[Floats]:
    """What a model expects of lists (n, K), level by level: (n, K), and thrice (n, 1)."""
    p = model.click_probs_of_rows(A)
    q = model.conditional_click_probs(A, np.zeros(A.shape, dtype=np.bool_))
    return [p, *_totals(p), 1.0 - (1.0 - q).prod(axis=1, keepdims=True)]


def observed(clicks: Bools) -> list[Floats]:
    """The same of clicks (n, K)."""
    c = clicks.astype(np.float64)
    return [c, *_totals(c), c.max(axis=1, keepdims=True)]


def _totals(p: Floats) -> list[Floats]:
    return [p[:, :3].sum(axis=1, keepdims=True), p.sum(axis=1, keepdims=True)]


def _slopes(found: Floats, more: Floats, data: Patterns) -> list[Slope]:
    lists = len(np.unique(data.items[data.count > 0], axis=0))  # items are numbered by query
    return [
        Slope(level, *regression(one, more), lists, int((one[:, 0] > NONE).sum()))
        for level, one in zip(LEVELS, found, strict=True)
    ]


def regression(found: Floats, more: Floats | float = 1.0) -> tuple[float, float, float]:
    """Slope and interval from the ``sums`` of queries, (Q, 5); ``more`` multiplies V."""
    c, a, aa, ac, cc = found.T
    use = c > NONE
    if not use.any():
        return np.nan, np.nan, np.nan
    b, Q = float(a[use].sum() / c[use].sum()), int(use.sum())
    V = np.maximum((aa - 2 * b * ac + b * b * cc) * more, NONE**2)[use]
    a, c = a[use], c[use]
    w, own, z = c * c / V, a / c, stdtrit(np.inf, 1 - ALPHA / 2)
    off, tau = float(w @ (own - w @ own / w.sum()) ** 2), 0.0
    if Q > 1 and off > chdtri(Q - 1, ALPHA):
        tau = (off - (Q - 1)) / float(w.sum() - w @ w / w.sum())
        z = stdtrit(Q - 1, 1 - ALPHA / 2)
    half = float(z * np.sqrt(((c / c.sum()) ** 2) @ (V / c**2 + tau)))
    return b, b - half, b + half
