"""What both rankers show for each query, and the effect that a test looks for there.

Rehearsals: by how much a list that was chosen by the clicks is flattered by them.

A best list is chosen by the same clicks that say what it earns, so it comes out too good. A
rehearsal does all of it again where the truth is known: users with one of the draws of the
parameters click on the lists of the log, the models are fitted to these clicks, the lists chosen,
and the effect planned. Those users then say what its effect is. The mean error of some rehearsals
is the bias of the plan, which is taken off; their spread is the error that remains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fit import Fit
from logeval.clicks.fitted import FittedModel
from logeval.clicks.lists import Lists
from logeval.clicks.users.mixture import Users
from logeval.log.queries import Query
from logeval.planning.power import (
    INTERLEAVINGS,
    Effect,
    Interleaved,
    Interleaving,
    credit_moments,
    metric_moments,
)
from logeval.planning.rankers import AFTER, Shown, shown_by
from logeval.running.arrays import Floats, Ints, place_of, sum_by
from logeval.running.progress import Progress
from logeval.running.seeds import generator
from logeval.storage.schemas import CLICK_STATISTICS
from logeval.tracks.fitted import FittedQuery, fitted_queries

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


DRAWS = 10  # of the parameters of a rehearsal's fit
EFFORT = 0.05  # of what is drawn of interleavings

Errors = dict[tuple[str, str], Floats]  # planned - true effect of each rehearsal


def is_chosen(ranker: str) -> bool:
    """Whether a ranker is made of the users that judge it."""
    return ranker.partition(":")[0] == "best" or AFTER.fullmatch(ranker) is not None


def rehearsed(
    asked: Plan, fitted: FittedModel, metrics: Sequence[str], queries: Sequence[FittedQuery]
) -> Errors:
    """The errors of rehearsals by design and metric; none where nothing was chosen by clicks."""
    rankers = [str(asked.control), str(asked.treatment)]
    lists, made = asked.fitted.lists, asked.fitted.manifest
    known = lists is not None and made.get("stage") == Fit.NAME and fitted.n_draws > 0
    if not (asked.rehearsals and asked.draws and known and any(map(is_chosen, rankers))):
        return {}
    assert lists is not None
    given = {key: value for key, value in made["arguments"].items() if key != "sources"}
    fit = Fit(made.get("log_folder", ""), **given).replace(draws=min(asked.draws, DRAWS))
    others = [asked.fitted.named(r[5:]).model for r in rankers if r.startswith("best:")]
    errors: dict[tuple[str, str], list[float]] = {}
    with Progress("rehearse", asked.rehearsals, "plans", asked.quiet) as progress:
        for r in range(asked.rehearsals):
            users = fitted.drawn(r % fitted.n_draws + 1)
            data = simulated(users, lists, generator(asked.seed, "plan", "rehearsal", r))
            again = {name: fit.fit(name, data) for name in dict.fromkeys([fitted.model, *others])}
            models = FittedModels(again, {}, Lists.of(data))
            found = _errors(asked, models, fitted.model, users, metrics, queries)
            for key, error in found.items():
                errors.setdefault(key, []).append(error)
            progress.advance(1)
    return {key: np.array(each) for key, each in errors.items()}


def _errors(
    asked: Plan,
    models: FittedModels,
    name: str,
    users: FittedModel,
    metrics: Sequence[str],
    wanted: Sequence[FittedQuery],
) -> dict[tuple[str, str], float]:
    """What a plan made of the models is off, of known users."""
    own, keys = models.fitted[name], [Query.of(f.query) for f in wanted]
    mine = replace(models, fitted={name: own})
    queries = fitted_queries(mine, wanted[0].K, metrics[0], keys)
    pairs, _ = pairs_of(asked, models, queries, metrics[0], EFFORT)
    there = [(f, pair) for f, pair in zip(queries, pairs, strict=True) if pair is not None]
    if not there:
        return {}
    kept, shown = [f for f, _ in there], [pair for _, pair in there]
    traffic = traffic_of(kept, asked.traffic)
    of = [Query.of(f.query) for f in kept]
    planned = [
        effects_of([draw.of(q).users for q in of], shown, traffic, metrics)
        for draw in own.some_draws(DRAWS)
    ]
    theirs = [users.of(q) for q in of]
    rows = [place_of(f.model.items, model.items) for f, model in zip(kept, theirs, strict=True)]
    moved = [_moved(pair, to) for pair, to in zip(shown, rows, strict=True)]
    true = effects_of([model.users for model in theirs], moved, traffic, metrics)
    return {key: _mean(planned, key) - true[key].mean for key in true}


def _mean(effects: Sequence[Effects], key: tuple[str, str]) -> float:
    return float(np.mean([one[key].mean for one in effects]))


def _moved(pair: Pair, to: Ints) -> Pair:
    """The same lists, in rows of another model."""
    control, treatment = (Shown(to[one.A], one.p) for one in (pair.control, pair.treatment))
    return Pair(control, treatment, tuple(one._replace(A=to[one.A]) for one in pair.interleaved))


def simulated(users: FittedModel, lists: Lists, rng: np.random.Generator) -> Patterns:
    """Clicks of these users on every list of a log, shown as often as there."""
    rows: dict[str, list[pa.Array]] = {name: [] for name in CLICK_STATISTICS.names}
    n = len(lists.serps)
    for q, query in enumerate(lists.queries):
        if query not in users.index:
            continue
        model = users.of(query, unseen=True)
        for length in np.unique(lists.length[lists.query == q]).tolist():
            mine = np.flatnonzero((lists.query == q) & (lists.length == length))
            each = np.repeat(mine, lists.serps[mine].astype(np.int64))
            A = place_of(lists.items[each, :length], model.items[:-1])
            A = np.where(A < 0, len(model.items) - 1, A)  # dropped from the model
            clicks = model.sample(A, rng.random(A.shape))
            bits = clicks.astype(np.int64) @ (1 << np.arange(length))
            keys, group = np.unique(bits * n + each, return_inverse=True)
            shown = lists.items[keys % n, :length]
            columns = {
                "query_id": np.full(len(keys), query.query_id),
                "region_id": [query.region_id] * len(keys),
                "holdout": np.zeros(len(keys), dtype=bool), "items": list(shown),
                "clicks": keys // n, "count": sum_by(group, np.ones(len(group)), len(keys)),
            }  # fmt: skip
            for f in CLICK_STATISTICS:
                rows[f.name].append(pa.array(columns[f.name], f.type))
    arrays = [pa.concat_arrays(rows[f.name]) for f in CLICK_STATISTICS]
    return patterns_of(pa.table(arrays, schema=CLICK_STATISTICS))
