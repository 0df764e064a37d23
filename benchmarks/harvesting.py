"""How often the intervals of examination from swaps hold the truth, and how wide they are.

Logs of PBM users: 5 queries with 100 items each, most of them rare, of unequal attraction and
traffic; lists of 10 are drawn around one order, which is that of attraction in part, so that good
items are shown on top. Where users differ, half of them click five times as often as the others,
all over a SERP, so that its clicks belong together. The same logs are taken as counts, too, which
do not say what was on a SERP. Coverage of ranks 2 to 10 together; its standard error counts logs,
not ranks.

    python -m benchmarks.run harvesting
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import expit

from logeval.clicks.estimation.patterns import Counted, Patterns, patterns_of
from logeval.clicks.support.graph import METHODS, harvest
from logeval.storage.schemas import CLICK_STATISTICS
from logeval.synthetic.world import EXAMINATION

K, L, QUERIES, LOGS = 10, 100, 5, 200
FROM_COUNTS = f"{METHODS[0]}, from counts"


def log_of(n: int, differ: bool, rng: np.random.Generator) -> Patterns:
    """A log of n SERPs."""
    parts = []
    for q, size in enumerate(np.round(n * np.array([0.5, 0.2, 0.15, 0.1, 0.05])).astype(int)):
        w = expit(rng.normal(-1.5, 1.0, L))
        score = 0.5 * np.argsort(np.argsort(-w)) / 10 + rng.normal(0, 0.5, L)
        A = np.argsort(score + rng.gumbel(0, 0.7, (size, L)), axis=1)[:, :K]
        less = np.where(differ & (rng.random((size, 1)) < 0.5), 0.2, 1.0)
        clicks = rng.random(A.shape) < w[A] * EXAMINATION * less
        parts.append((np.full(size, q), 1000 * q + A, clicks @ (1 << np.arange(K))))
    query, A, bits = (np.concatenate(each) for each in zip(*parts, strict=True))
    columns: dict[str, Any] = {
        "query_id": query, "region_id": pa.nulls(len(query), pa.int64()),
        "holdout": np.zeros(len(query), bool), "items": list(A), "clicks": bits,
        "count": np.ones(len(query), np.int64),
    }  # fmt: skip
    return patterns_of(pa.table(columns, schema=CLICK_STATISTICS))


def counted(data: Patterns) -> Counted:
    """The same log as impressions and clicks: every shown result by itself."""
    shown = data.shown
    n = len(shown.item)
    items, clicks = np.full((n, data.K), -1), np.zeros((n, data.K), bool)
    items[np.arange(n), shown.position] = shown.item
    clicks[np.arange(n), shown.position] = shown.clicked
    length = shown.position + 1
    return Counted(
        data.queries, shown.query, items, clicks, length, shown.count, data.item_ids, data.offsets
    )


def rows(seed: int = 1, logs: int = LOGS) -> Iterator[dict[str, Any]]:
    """A row per size of log, kind of users and method."""
    for n, differ in ((1_000, False), (5_000, False), (5_000, True)):
        methods = (*METHODS, FROM_COUNTS)
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
        for number in range(logs):
            rng = np.random.default_rng([seed, n, differ, number])
            data = log_of(n, differ, rng)
            counts = harvest(counted(data)).query("method == @METHODS[0]")
            table = pd.concat([harvest(data), counts.assign(method=FROM_COUNTS)])
            table = table[(table["rank"] > 1) & table["examination"].notna()]
            truth = EXAMINATION[table["rank"].to_numpy() - 1]
            held = (table["low"] <= truth) & (truth <= table["high"])
            width = (table["high"] - table["low"]) / truth
            for name in methods:
                mine = (table["method"] == name).to_numpy()
                found[name].append((held[mine].mean(), width[mine].median(), mine.sum() / (K - 1)))
        for name, each in found.items():
            coverage, width, known = np.array(each).T
            yield {
                "SERPs": n,
                "users": "differ" if differ else "alike",
                "method": name,
                "coverage": float(np.nanmean(coverage)),
                "standard error": float(np.nanstd(coverage) / np.sqrt(logs)),
                "width, of the value": float(np.nanmedian(width)),
                "ranks with a value": float(known.mean()),
            }
