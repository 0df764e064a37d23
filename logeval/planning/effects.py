"""What both rankers show for each query, and the effect that a test looks for there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.models.users.mixture import Users
from logeval.planning.interleaving import INTERLEAVINGS, Interleaved, Interleaving
from logeval.planning.moments import credit_moments, metric_moments
from logeval.planning.power import Effect
from logeval.planning.rankers import Shown, shown_by
from logeval.running.arrays import Floats
from logeval.running.seeds import generator
from logeval.tracks.fitted import FittedQuery

if TYPE_CHECKING:
    from logeval.planning.plan import Plan

# What is drawn of interleavings, spread over queries by their traffic: pairs of lists of rankers
# that show many, and lists of a probabilistic interleaving. A query has some at least.
PAIRS, LEAST_PAIRS = 8_000, 20
DRAWN, LEAST_DRAWN = 1_000_000, 500
AB = "A/B test"
CREDIT = "credit"
Effects = dict[tuple[str, str], Effect]  # by design and metric


class Pair(NamedTuple):
    """What both rankers show for a query, and what interleavings make of it."""

    control: Shown
    treatment: Shown
    interleaved: tuple[Interleaved, ...]


def traffic_of(queries: Sequence[FittedQuery], how: str) -> Floats:
    """The share of each query in the searches."""
    serps = np.array([f.serps for f in queries])
    if how == "equal" or np.isnan(serps).all():
        return np.full(len(serps), 1.0 / len(serps))
    serps = np.nan_to_num(serps)
    share: Floats = serps / serps.sum()
    return share


def pairs_of(
    asked: Plan,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    metric: str,
    effort: float = 1.0,
) -> tuple[list[Pair | None], dict[str, Any]]:
    """What both rankers show; None for the queries that one of them does not have."""
    control, treatment = (
        shown_by(str(text), models, queries, metric, asked.seed, asked.min_shown)
        for text in (asked.control, asked.treatment)
    )
    found: list[Pair | None] = []
    share = traffic_of(queries, asked.traffic)
    for f, a, b, part in zip(queries, control, treatment, share, strict=True):
        if a is None or b is None:
            found.append(None)
            continue
        rngs = [generator(asked.seed, "plan", way.name, f.query) for way in INTERLEAVINGS]
        mixed = [interleaved(way, a, b, rng, part * effort) for way, rng in
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


def effects_of(
    users: Sequence[Users],
    pairs: Sequence[Pair],
    traffic: Floats,
    metrics: Sequence[str],
) -> Effects:
    """The effect of each design and metric, on the users of a model."""
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


def mean_of(users: Users, shown: Shown, metric: str) -> float:
    """What a search of a ranker earns."""
    return _moments(users, shown, metric)[0]
