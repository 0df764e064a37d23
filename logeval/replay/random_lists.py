"""Lists in random order as the truth of estimators: do their intervals hold, is their order right?

The SERPs in random order are cut into ``RANKERS`` by the result on top: of the items that were seen
there, those that the ranked lists have highest, and so on down. Every part is what a ranker shows
that puts such an item first and the others in random order, and its clicks are the truth of that
ranker, whatever users do. Estimators and their click models see the ranked lists alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.log.log import Log
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.fitting import fit_models
from logeval.replay.logged import cut, read_logged
from logeval.replay.targets.read import TargetSource, bind, mean_clicks
from logeval.replay.values.estimate import Estimate, add_intervals
from logeval.replay.values.values import Values
from logeval.running.arrays import Floats, Ints, sum_by

RANKERS, RARE = 4, 20  # SERPs of a ranker and query, with fewer of which it is not judged
ROUNDS, REFITS = 200, 20  # of the bootstrap
MIN_SUPPORT = 0.8  # as ``replay estimate`` has it
NORMAL = 1.959964


class Judged(NamedTuple):
    """Values of R rankers on Q queries: true, and by E estimators; nan where not judged."""

    truth: Floats  # (R, Q)
    truth_error: Floats  # (R, Q) its standard error
    value: Floats  # (E, R, Q)
    half: Floats  # (E, R, Q) half of the 95% interval


def against_random(
    log: Log, random: Patterns, K: int, chosen: list[Estimator], scope: str, smoothing: float,
    seed: int, quiet: bool,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row per estimator: intervals that hold, and rankers in the right order, at K positions."""
    queries = list(random.queries)
    ranked = read_logged(log, queries=queries, where="NOT coalesce(random, false)")
    group = rankers(random, ranked.patterns)
    parts = [random.take(group == r) for r in range(RANKERS)]
    parts = [part for part in parts if len(part.count)]
    models = partial(fit_models, chosen, ranked, scope=scope)
    fitted = models(ranked.patterns.count)
    short, found = cut(ranked, K), []
    for r, part in enumerate(parts):
        target = bind(TargetSource(f"ranker {r}", patterns=part), short, K, scope, seed)
        values = Values(short, target, chosen, smoothing=smoothing)
        found.append(Estimate(values, values.predictions(fitted), MIN_SUPPORT))
    add_intervals(found, ranked, models, ROUNDS, REFITS, seed, quiet)
    yield from scores(_judged(found, parts, short.patterns.queries, K), chosen, K)


def rankers(random: Patterns, ranked: Patterns) -> Ints:
    """The ranker of each pattern: by the mean rank that its first item has in the ranked lists."""
    keys = list(zip(ranked.item_query.tolist(), ranked.item_ids.tolist(), strict=True))
    number = {(ranked.queries[q], i): n for n, (q, i) in enumerate(keys)}
    shown = ranked.shown
    total = ranked.sum_items(shown.count)
    mean = ranked.sum_items(shown.count * shown.position) / np.maximum(total, 1e-300)
    top = random.items[:, 0]
    rank = np.full(random.P, np.inf)  # an item that the ranker never showed is last
    for p in range(random.P):
        pair = number.get((random.queries[random.query[p]], int(random.item_ids[top[p]])))
        if pair is not None:
            rank[p] = mean[pair]
    group = np.zeros(random.P, dtype=np.int64)
    for q in range(random.Q):
        mine = np.flatnonzero(random.query == q)
        items, first = np.unique(top[mine], return_index=True)
        order = np.argsort(rank[mine][first], kind="stable").argsort()
        place = order * RANKERS // max(len(items), 1)
        group[mine] = place[np.searchsorted(items, top[mine])]
    return group


def _judged(found: list[Estimate], parts: list[Patterns], queries: Any, K: int) -> Judged:
    """The values of all rankers, numbered as the queries of the log."""
    place = {query: q for q, query in enumerate(queries)}
    shape = (len(found), len(queries))
    truth, error = np.full(shape, np.nan), np.full(shape, np.nan)
    Q = parts[0].Q
    clicks = [part.clicks[:, :K].sum(axis=1) for part in parts]
    size = np.stack([sum_by(part.query, part.count, Q) for part in parts])
    found_mean = np.stack(
        [mean_clicks(p.query, c, p.count, Q)[0] for p, c in zip(parts, clicks, strict=True)]
    )
    # of one SERP: the same for all rankers of a query, for each has few
    spread = sum(
        sum_by(p.query, p.count * (c - found_mean[r, p.query]) ** 2, Q)
        for r, (p, c) in enumerate(zip(parts, clicks, strict=True))
    ) / np.maximum(size.sum(axis=0) - (size > 0).sum(axis=0), 1.0)
    for r, q in zip(*np.nonzero(size >= RARE), strict=True):
        if (there := place.get(parts[r].queries[q])) is not None:
            truth[r, there] = found_mean[r, q]
            error[r, there] = np.sqrt(spread[q] / size[r, q])
    value = np.stack([each.value[:, 1:] for each in found], axis=1)
    half = np.stack([each.half_widths()[0][:, 1:] for each in found], axis=1)
    return Judged(truth, error, value, half)


def scores(judged: Judged, estimators: Sequence[object], K: int) -> Iterator[dict[str, Any]]:
    """Of each estimator: lists judged, share within the interval; pairs, share in right order.

    An interval has the spread of the truth in it. Pairs are those that the truth tells apart.
    """
    R = len(judged.truth)
    for e, name in enumerate(estimators):
        value, half = judged.value[e], judged.half[e]
        there = np.isfinite(judged.truth) & np.isfinite(value) & np.isfinite(half)
        width = np.hypot(half, NORMAL * judged.truth_error)
        held = np.abs(value - judged.truth) <= width
        right = pairs = 0
        for a, b in combinations(range(R), 2):
            gap = judged.truth[a] - judged.truth[b]
            sure = np.abs(gap) > NORMAL * np.hypot(judged.truth_error[a], judged.truth_error[b])
            both = sure & np.isfinite(value[a]) & np.isfinite(value[b])
            pairs += int(both.sum())
            right += int((np.sign(gap) == np.sign(value[a] - value[b]))[both].sum())
        yield {
            "estimator": str(name),
            "positions": K,
            "lists": int(there.sum()),
            "within": float(held[there].mean()) if there.any() else None,
            "pairs": pairs,
            "order": right / pairs if pairs else None,
        }
