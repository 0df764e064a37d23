"""How far the clicks of a log are from those of a model: over all queries, and query by query.

The log and the simulations of a model on its lists are counted alike (``features``). The users of a
simulation have one of the draws of the parameters that were made with the fit, unless the model was
fitted to these lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.checks.deviations import Deviations, deviations
from logeval.clicks.quality.checks.features import TOP_ITEMS, Components, Layout, add_rows
from logeval.clicks.quality.checks.sample import Sample
from logeval.clicks.quality.scores import alike, local_items
from logeval.clicks.support.harvesting import swap_weights
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints

QUERY_SERPS = 50  # queries with fewer are checked only together with the others
QUERIES = 100  # the most frequent ones, that are checked by themselves
OVERALL_ITEMS = 20
BLOCK = 100_000  # simulated SERPs in memory at a time


@dataclass(frozen=True)
class Batch:
    """Lists of one query and of equal length, as local items of its model."""

    A: Ints  # (n, length)
    clicks: Bools  # (n, length)
    count: Floats  # (n,)
    top: Ints  # (n, length) place among the items shown most, or -1
    swaps: Floats | None = None  # (n, length, 2) see ``support.harvesting.swap_weights``

    @classmethod
    def of(
        cls, data: Patterns, rows: Ints, K: int, model: ClickModel, top: Ints, swaps: Floats
    ) -> Batch:
        """Some patterns of K results; items the model does not know are its last."""
        items = data.items[rows, :K]
        A = local_items(model.items, data.item_ids[items])
        return cls(A, data.clicks[rows, :K], data.count[rows], top[items], swaps[rows, :K])

    def serps(self) -> tuple[Ints, Ints, Ints]:
        """One row per SERP: its list, places among the items shown most, and its row here."""
        each = np.repeat(np.arange(len(self.count)), self.count.astype(np.int64))
        return self.A[each], self.top[each], each

    def add_swaps(self, clicks: Bools | Ints, rows: Ints, weight: Floats, out: Floats) -> None:
        """Add the weighted clicks of simulations (s, n, length) of some rows to (s, ranks, 2)."""
        if self.swaps is not None:
            length = self.A.shape[1]
            weights = self.swaps[rows] * weight[:, None, None]
            out[:, :length] += np.einsum("snk,nkw->skw", clicks, weights)


def observed_features(
    model: ClickModel, batches: list[Batch], layout: Layout, swaps: Floats | None = None
) -> Floats:
    """The features of the log's clicks, (features,); the model only predicts the probabilities.

    What ``swaps`` (1, ranks, 2) count is added there.
    """
    out = np.zeros((1, layout.size))
    swaps = np.zeros((1, layout.K, 2)) if swaps is None else swaps
    for b in batches:
        q = model.conditional_click_probs(b.A, b.clicks)
        row = np.zeros(len(b.count), dtype=np.int64)
        add_rows(b.clicks.astype(np.int8), q, b.top, b.count, row, layout.at, layout.R, out)
        b.add_swaps(b.clicks[None], np.arange(len(b.count)), b.count, swaps)
    return out[0]


def replicates(
    model: ClickModel,
    users: Sequence[ClickModel],
    batches: list[Batch],
    layout: Layout,
    n: int,
    rng: np.random.Generator,
    swaps: Floats | None = None,
) -> Floats:
    """The features of n simulations of all SERPs of a query, (n, features).

    New users look at every list as often as the log shows it: in equally many simulations those of
    each of ``users``. The model only predicts the probabilities. What ``swaps`` (n, ranks, 2) count
    is added there.
    """
    out = np.zeros((n, layout.size))
    swaps = np.zeros((n, layout.K, 2)) if swaps is None else swaps
    shares = np.array_split(np.arange(n), len(users))
    for b in batches:
        A, top, each = b.serps()
        at_once = max(1, BLOCK // len(A))
        for clicking, mine in zip(users, shares, strict=True):
            for start in range(0, len(mine), at_once):
                simulations = mine[start : start + at_once]
                lists = np.tile(A, (len(simulations), 1))
                clicks = clicking.sample(lists, rng.random(lists.shape))
                q = model.conditional_click_probs(lists, clicks)
                row = np.repeat(simulations, len(A))
                add_rows(clicks, q, top, np.ones(len(lists)), row, layout.at, layout.R, out)
                by_simulation = clicks.reshape(len(simulations), *A.shape)
                found = swaps[simulations[0] : simulations[-1] + 1]
                b.add_swaps(by_simulation, each, np.ones(len(each)), found)
    return out


class Checked(NamedTuple):
    """The SERPs of some queries, and how far off their clicks are."""

    serps: int
    deviations: Deviations


def against_log(
    fitted: FittedModel, sample: Sample, n: int, seed: int
) -> tuple[Checked, dict[Query, Checked]]:
    """The deviations over all queries, and of the frequent ones."""
    test, layout = sample.test, Layout(sample.test.K)
    place, top = _top_items(test)
    rows_of: dict[Query, list[tuple[int, Ints]]] = {}
    for query, K, rows in alike(test):
        rows_of.setdefault(query, []).append((K, rows))
    serps = test.serps
    queries = [test.queries[q] for q in np.argsort(-serps, kind="stable") if serps[q] > 0]
    queries = [query for query in queries if query in fitted.index]
    users = [fitted] if sample.fitted_to else fitted.some_draws(n)

    total = np.zeros((n + 1, layout.size))
    number = {query: q for q, query in enumerate(test.queries)}
    by_query: dict[Query, Checked] = {}
    shown_most = _overall_items(test, top, queries, number)
    items: list[tuple[int, Floats, Floats]] = []
    shown, clicked = layout.items
    weights, swaps = swap_weights(test), np.zeros((n + 1, layout.K, 2))
    for query in queries:
        model = fitted.of(query, unseen=True, K=layout.K)
        batches = [Batch.of(test, rows, K, model, place, weights) for K, rows in rows_of[query]]
        features = np.empty((n + 1, layout.size))
        features[0] = observed_features(model, batches, layout, swaps[:1])
        rng = seeds.generator(seed, "checks", "users", str(query))  # the same for all models
        drawn = [f.of(query, unseen=True, K=layout.K) for f in users]
        features[1:] = replicates(model, drawn, batches, layout, n, rng, swaps[1:])
        total += features
        q = number[query]
        for slot in shown_most.get(q, []):
            items.append((
                int(test.item_ids[top[q][slot]]),
                features[:, shown.start + slot].copy(), features[:, clicked.start + slot].copy(),
            ))  # fmt: skip
        if serps[q] >= QUERY_SERPS and len(by_query) < QUERIES:
            named = sample.names.names_of("item", test.item_ids[top[q]])
            parts = _with_items(layout.components, named, shown.start, clicked.start)
            by_query[query] = Checked(int(serps[q]), _deviations(features, parts, layout))
    wide = np.concatenate([total, *([c[:, None] for _, *two in items for c in two])], axis=1)
    named = sample.names.names_of("item", [i for i, _, _ in items])
    parts = _with_items(layout.components, named, layout.size, layout.size + 1, step=2)
    upper, lower = swaps[:, :-1, 0], swaps[:, 1:, 1]
    parts = _with_swaps(parts, layout.K - 1, wide.shape[1])
    wide = np.concatenate([wide, upper, upper + lower], axis=1)
    return Checked(int(serps.sum()), _deviations(wide, parts, layout)), by_query


def _deviations(features: Floats, parts: Components, layout: Layout) -> Deviations:
    results = np.full(len(parts.check), np.nan)
    bins, _, _ = layout.bins
    mine = [j for j, check in enumerate(parts.check) if check == "calibration"]
    results[mine] = features[0, bins]
    return deviations(features, parts, results)


def _top_items(data: Patterns) -> tuple[Ints, list[Ints]]:
    """The place of each pair among the most shown of its query, or -1; and these pairs."""
    place = np.full(data.I, -1, dtype=np.int64)
    top = []
    for q in range(data.Q):
        span = np.arange(data.offsets[q], data.offsets[q + 1])
        best = span[np.argsort(-data.impressions[span], kind="stable")[:TOP_ITEMS]]
        best = best[data.impressions[best] > 0]
        place[best] = np.arange(len(best))
        top.append(best)
    return place, top


def _overall_items(
    data: Patterns, top: list[Ints], queries: list[Query], number: dict[Query, int]
) -> dict[int, list[int]]:
    """Of all queries, the pairs shown most: their places, by query."""
    pairs = [(q, slot) for q in (number[x] for x in queries) for slot in range(len(top[q]))]
    pairs.sort(key=lambda pair: -data.impressions[top[pair[0]][pair[1]]])
    out: dict[int, list[int]] = {}
    for q, slot in pairs[:OVERALL_ITEMS]:
        out.setdefault(q, []).append(slot)
    return out


def _with_swaps(parts: Components, pairs: int, start: int) -> Components:
    """The components with those of neighbouring ranks."""
    k = np.arange(pairs)
    return Components(
        parts.check + ["swaps"] * pairs,
        parts.label + [f"ranks {j + 1} and {j + 2}" for j in k],
        np.concatenate([parts.x, 1.0 + k]),
        np.concatenate([parts.num, start + k]),
        np.concatenate([parts.den, start + pairs + k]),
    )


def _with_items(
    parts: Components, names: list[str], shown: int, clicked: int, step: int = 1
) -> Components:
    """The components with those of the items shown most."""
    n = np.arange(len(names))
    return Components(
        parts.check + ["top-items"] * len(names),
        parts.label + [f"item {name}" for name in names],
        np.concatenate([parts.x, 1.0 + n]),
        np.concatenate([parts.num, clicked + step * n]),
        np.concatenate([parts.den, shown + step * n]),
    )
