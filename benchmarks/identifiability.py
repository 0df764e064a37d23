"""Queries whose clicks can carry a PBM, and those that cannot: how many are told apart.

100 queries each of

* connected: every list is drawn anew around one order, so items move over all ranks;
* weakly connected: two blocks of ranks, 1 to 5 and 6 to 10, whose items never mix but in 1% of
  the SERPs;
* disconnected: in half of the queries the blocks never mix, in the others items come and go but
  each is always at the same rank.

Each has 30 to 120 items, most of them rare, and 2,000 or 500 SERPs of PBM users. ``flagged`` is the
share of queries that cannot carry a PBM; errors are medians of |log(fitted / true attraction)| of
items shown 100 times or more, on the scale of the largest part of their query, ``examination`` of
the same for e, by whether the query is flagged.

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
from logeval.clicks.support.identified import identified
from logeval.storage.schemas import CLICK_STATISTICS
from logeval.synthetic.world import EXAMINATION

K = 10
KINDS = ("connected", "weakly connected", "disconnected")


def lists(kind: str, q: int, L: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n lists of K of L items, (n, K)."""
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


def measure(kind: str, queries: int, n: int, seed: int) -> dict[str, float]:
    """Flags and errors of one kind of queries."""
    data, w = world(kind, queries, n, np.random.default_rng([seed, KINDS.index(kind)]))
    found = identified(PBM, data, "per-query")
    assert found is not None
    assert found.cut is not None
    fitted = fit_one("PBM", data, Options("em", scope="per-query", draws=0))
    error = np.log(fitted.estimates["w"].value / w)
    often = data.impressions >= 100
    off = np.full(data.Q, np.nan)
    for q in range(data.Q):
        mine = (data.item_query == q) & often
        inside = mine & found.items
        off[q] = np.median(error[inside]) if inside.any() else 0.0
    error = np.abs(error - off[data.item_query])
    sure, unsure = often & found.items, often & ~found.items
    e = np.log(fitted.estimates["e"].value / EXAMINATION)
    wrong = np.abs(e - np.median(e, axis=1, keepdims=True)).max(axis=1)
    ok = found.carried
    return {
        "flagged": float((~found.carried).mean()),
        "share": float(np.median(found.share)),
        "cut": float(np.median(found.cut)),
        "error inside": float(np.median(error[sure])) if sure.any() else np.nan,
        "error outside": float(np.median(error[unsure])) if unsure.any() else np.nan,
        "examination, flagged": float(np.median(wrong[~ok])) if (~ok).any() else np.nan,
        "examination, others": float(np.median(wrong[ok])) if ok.any() else np.nan,
    }


def rows(seed: int = 1, queries: int = 100) -> Iterator[dict[str, Any]]:
    """A row per kind of queries and size of log."""
    for serps in (2_000, 500):
        for kind in KINDS:
            found = measure(kind, queries, serps, seed)
            yield {"queries": kind, "SERPs of each": serps, **found}
