"""Queries whose clicks can carry a PBM, and those that cannot: how many are told apart.

100 queries each of

* connected: every list is drawn anew around one order, so items move over all ranks;
* weakly connected: two blocks of ranks, 1 to 5 and 6 to 10, whose items never mix but in 1% of
  the SERPs;
* disconnected: in half of the queries the blocks never mix, in the others items come and go but
  each is always at the same rank.

Each has 30 to 120 items, most of them rare, and 500, 2,000 or 10,000 SERPs of PBM users. A query
is unrecoverable in truth (``truly``) if the information of the clicks that its true attraction and
examination let expect on what was shown, leaves more than 30% of the prior's width open
(``support/graph.py``). ``apart`` and ``too few`` are the shares that are said to have lists that do
not mix, and too few SERPs; ``missed`` are of the unrecoverable those with neither mark, ``false``
of the others those with one. Errors are medians of |log(fitted / true attraction)| of items shown
100 times or more, on the scale of the largest part of their query, inside and outside of it;
``examination`` of the same for e, of the rank that is furthest off, by whether the query is marked;
``cut`` of the factor between the two sides of the weakest cut, and ``by chance`` what its
information lets expect, .674 / sqrt(clicks), without a prior.

    python benchmarks/run.py identifiability
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.pbm import PBM
from logeval.clicks.support.graph import FIRM, Parts, parts_of
from logeval.clicks.support.identified import _cells, identified
from logeval.storage.schemas import CLICK_STATISTICS
from logeval.synthetic.world import EXAMINATION

K = 10
KINDS = ("connected", "weakly connected", "disconnected")


def lists(kind: str, q: int, L: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n lists of K of L items, (n, K); of "one list" all are the same."""
    if kind == "one list":
        return np.tile(np.arange(K), (n, 1))
    if kind == "connected":
        score = -1.5 * np.log1p(np.arange(L))
        return np.argsort(-(score + rng.gumbel(size=(n, L))), axis=1)[:, :K]
    if kind == "disconnected" and q % 2:  # every item has a rank of its own
        rank = np.concatenate([np.arange(K), rng.integers(0, K, L - K)])
        weight = 1.0 / np.arange(1, L + 1)
        return np.stack(
            [
                rng.choice(mine, n, p=weight[mine] / weight[mine].sum())
                for mine in (np.flatnonzero(rank == k) for k in range(K))
            ],
            axis=1,
        )
    halves = []
    for mine in (np.arange(0, L, 2), np.arange(1, L, 2)):  # each block has its own items
        score = -1.5 * np.log1p(np.arange(len(mine)))
        halves.append(mine[np.argsort(-(score + rng.gumbel(size=(n, len(mine)))), axis=1)[:, :5]])
    found = np.concatenate(halves, axis=1)
    if kind == "weakly connected":
        rows = np.flatnonzero(rng.random(n) < 0.01)
        found[rows] = rng.permuted(found[rows], axis=1)
    return found


def world(kind: str, queries: int, n: int, rng: np.random.Generator) -> tuple[Patterns, np.ndarray]:
    """The clicks, and the true attraction of each (query, item) pair."""
    parts, truth = [], {}
    e = EXAMINATION
    for q in range(queries):
        L = int(rng.integers(30, 121))
        w = expit(logit(0.15) + rng.normal() + 0.8 * rng.normal(size=L))
        A = lists(kind, q, L, n, rng)
        clicks = rng.random(A.shape) < w[A] * e
        bits = clicks.astype(np.int64) @ (1 << np.arange(K))
        parts.append((np.full(n, q), A, bits))
        truth[q] = w
    query, A, bits = (np.concatenate(each) for each in zip(*parts, strict=True))
    columns = {
        "query_id": query, "region_id": pa.nulls(len(query), pa.int64()),
        "holdout": np.zeros(len(query), bool), "items": list(A), "clicks": bits,
        "count": np.ones(len(query), np.int64),
    }  # fmt: skip
    data = patterns_of(pa.table(columns, schema=CLICK_STATISTICS))
    order = [each.query_id for each in data.queries]
    w = np.array([truth[order[q]][i] for q, i in zip(data.item_query, data.item_ids, strict=True)])
    return data, w


def truly(data: Patterns, w: np.ndarray) -> tuple[np.ndarray, Parts]:
    """Which queries are unrecoverable, by the clicks to be expected; and their graph."""
    cells = _cells(data, "per-query", lambda block: block.shown.position, data.K)
    clicks = cells.impressions * w[cells.item] * EXAMINATION[cells.cell % K]
    graph = parts_of(cells._replace(clicks=clicks), clicks=clicks)
    return graph.hold < FIRM, graph


def measure(kind: str, queries: int, n: int, seed: int) -> dict[str, float]:
    """Flags and errors of one kind of queries."""
    data, w = world(kind, queries, n, np.random.default_rng([seed, KINDS.index(kind)]))
    found = identified(PBM, data, "per-query")
    assert found is not None
    fitted = fit_one("PBM", data, Options("em", scope="per-query", draws=0))
    error = np.log(fitted.estimates["w"].value / w)
    often = data.impressions >= 100
    off = np.full(data.Q, np.nan)
    for q in range(data.Q):
        mine = (data.item_query == q) & often
        inside = mine & found.items
        off[q] = np.median(error[inside]) if inside.any() else 0.0
    error = np.abs(error - off[data.item_query])
    e = np.log(fitted.estimates["e"].value / EXAMINATION)
    wrong = np.abs(e - np.median(e, axis=1, keepdims=True)).max(axis=1)
    lost, graph = truly(data, w)
    across = [abs(x[side].mean() - x[~side].mean()) for x, side in zip(e, graph.side, strict=True)]
    chance = 0.674 / np.sqrt(np.maximum(graph.cut, 1e-6))
    marked = ~found.carried
    return {
        "truly": lost.mean(),
        "apart": found.apart.mean(),
        "too few": (marked & ~found.apart).mean(),
        "missed": (~marked)[lost].mean() if lost.any() else np.nan,
        "false": marked[~lost].mean() if (~lost).any() else np.nan,
        "inside": _median(error, often & found.items),
        "outside": _median(error, often & ~found.items),
        "examination, marked": _median(wrong, marked),
        "others": _median(wrong, ~marked),
        "cut": float(np.median(across)),
        "by chance": float(np.median(chance)) if np.median(graph.cut) > 0 else np.nan,
    }


def _median(x: np.ndarray, mine: np.ndarray) -> float:
    return float(np.median(x[mine])) if mine.any() else np.nan


def rows(seed: int = 1, queries: int = 100) -> Iterator[dict[str, Any]]:
    """A row per kind of queries and size of log."""
    for serps in (500, 2_000, 10_000):
        for kind in KINDS:
            found = measure(kind, queries, serps, seed)
            yield {"queries": kind, "SERPs of each": serps, **found}
