"""Random models of every kind, and clicks drawn from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.storage import schemas
from tests.serps import Serp, sampled_serps, write_serps

ALL = list(MODELS)


def random_model(name: str, rng: np.random.Generator, L: int = 6, K: int = 4, low: float = 0.05,
                 high: float = 0.95) -> ClickModel:  # fmt: skip
    """A model with parameters drawn uniformly."""
    shapes = {"item": (L,), "position": (K,), "transition": (K, K + 1), "scalar": ()}
    kind = MODELS[name]
    values = {p.field: rng.uniform(low, high, shapes[p.kind]) for p in kind.PARAMETERS}
    return kind(items=np.arange(100, 100 + L), K=K, **values)


def random_lists(rng: np.random.Generator, n: int, L: int, K: int) -> np.ndarray:
    """n lists of K of L items."""
    return np.array([rng.permutation(L)[:K] for _ in range(n)])


def all_patterns(K: int) -> np.ndarray:
    """All 2^K click patterns."""
    return (np.arange(1 << K)[:, None] >> np.arange(K)) & 1


def statistics_of(
    models: list[ClickModel], n: int, rng: np.random.Generator, spread: float = 1.0
) -> pa.Table:
    """Click statistics of n SERPs per model (query 0, 1, ...), lists drawn around one order."""
    rows = []
    for q, model in enumerate(models):
        score = rng.normal(size=model.L)
        noise = spread * rng.gumbel(size=(n, model.L))
        A = np.argsort(-(score + noise), axis=1)[:, : model.K]
        clicks = model.sample(A, rng.random(A.shape)).astype(np.int64)
        for a, c in zip(model.items[A].tolist(), clicks.tolist(), strict=True):
            bits = sum(click << k for k, click in enumerate(c))
            row = {"query_id": q, "holdout": False, "items": a, "clicks": bits, "count": 1}
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schemas.CLICK_STATISTICS)


def statistics_from(A: np.ndarray, clicks: np.ndarray) -> pa.Table:
    """Click statistics of the SERPs of one query: lists of items and their clicks, (n, K) each."""
    bits = clicks.astype(np.int64) @ (1 << np.arange(A.shape[1]))
    return table_of([(0, a, c, 1) for a, c in zip(A.tolist(), bits.tolist(), strict=True)])


def table_of(rows: list[tuple[int, list[int], int, int]]) -> pa.Table:
    """Click statistics of (query, items, clicks as bits, count)."""
    names = ("query_id", "items", "clicks", "count")
    every = [{"holdout": False, **dict(zip(names, row, strict=True))} for row in rows]
    return pa.Table.from_pylist(every, schema=schemas.CLICK_STATISTICS)


def three_queries(folder: Path) -> Path:
    """A log with the clicks of the DCMs of three queries, and one short list."""
    rng = np.random.default_rng(8)
    serps: list[Serp] = []
    for q in range(3):
        model = random_model("DCM", rng, L=7, K=4, low=0.1, high=0.7)
        lists = random_lists(rng, 400 - 100 * q, 7, 4)
        serps += sampled_serps(model, lists, rng, query_id=q, first=len(serps))
    serps.append(Serp(0, [100, 101], [0, 1], session_id=len(serps)))  # a short list
    return write_serps(folder, serps, parts=2)


def log_likelihood(name: str, data: Patterns, options: Options) -> float:
    """ln P of the data under the fitted model, from its public methods."""
    fitted = fit_one(name, data, options)
    total = 0.0
    for q, query in enumerate(data.queries):
        rows = data.query == q
        A = data.items[rows] - data.offsets[q]
        total += data.count[rows] @ fitted.of(query).log_likelihood(A, data.clicks[rows])
    return float(total)
