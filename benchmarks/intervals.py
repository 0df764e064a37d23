"""How often the 95% intervals of fitted parameters hold the truth, on logs drawn from known models.

Logs of 12 queries with K = 8 positions, attraction and satisfaction from Beta(2, 5), what the items
of a query share uniform in [0.3, 0.8] (continuation of the DBN in [0.7, 0.95], examination falling
from 1); lists are drawn around one order. A row per size of log, model and parameter.

    python benchmarks/run.py intervals
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from logeval import seeds, tables
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS

QUERIES, K = 12, 8
SIZES = {"4,000 SERPs, L = 30": (4000, 30), "400 SERPs, L = 60": (400, 60)}
FITS = [
    ("DCTR", "counting"),
    ("CM", "counting"),
    ("PBM", "em"),
    ("UBM", "em"),
    ("DCM", "em"),
    ("SDBN", "em"),
    ("DBN", "em"),
    ("CCM", "em"),
    ("DCM", "guo"),
    ("SDBN", "counting"),
]


def truth(name: str, L: int, rng: np.random.Generator) -> ClickModel:
    """A model of one query."""
    values: dict[str, Any] = {}
    for p in MODELS[name].PARAMETERS:
        if p.kind == "item":
            values[p.field] = rng.beta(2, 5, L)
        elif p.kind == "scalar":
            values[p.field] = rng.uniform(0.7, 0.95) if name == "DBN" else rng.uniform(0.3, 0.8)
        elif p.kind == "position" and name == "PBM":
            values[p.field] = np.sort(np.append(1.0, rng.uniform(0.2, 0.9, K - 1)))[::-1]
        else:
            values[p.field] = rng.uniform(0.3, 0.8, (K,) if p.kind == "position" else (K, K + 1))
    return MODELS[name](items=np.arange(L), K=K, **values)


def clicks_of(
    models: Sequence[ClickModel], n: int, rng: np.random.Generator, K: int = K
) -> Patterns:
    """n SERPs of each model, as the estimators want them."""
    rows = []
    for q, model in enumerate(models):
        noise = 2.0 * rng.gumbel(size=(n, model.L))
        A = np.argsort(-(rng.normal(size=model.L) + noise), axis=1)[:, :K]
        bits = model.sample(A, rng.random(A.shape)).astype(np.int64) @ (1 << np.arange(K))
        rows += [
            {"query_id": q, "holdout": False, "items": a, "clicks": c, "count": 1}
            for a, c in zip(A.tolist(), bits.tolist(), strict=True)
        ]
    return patterns_of(pa.Table.from_pylist(rows, schema=tables.CLICK_STATISTICS))


def coverage(
    name: str, method: str, n: int, L: int, logs: int, seed: int, scope: str = "partial"
) -> dict[str, float]:
    """The share of true values inside their intervals, by parameter."""
    held: dict[str, list[np.ndarray]] = {}
    for log in range(logs):
        rng = seeds.generator(seed, "intervals", name, n, L, log)
        models = [truth(name, L, rng) for _ in range(QUERIES)]
        data = clicks_of(models, n, rng)
        fit = MODELS[name].fit(data, Options(method, scope))
        for p in MODELS[name].PARAMETERS:
            x = fit.estimates[p.field]
            for q, query in enumerate(data.queries):
                true = np.asarray(getattr(models[query.query_id], p.field))
                if p.kind == "item":
                    rows = slice(data.offsets[q], data.offsets[q + 1])
                    true = true[data.item_ids[rows]]
                    low, high = x.low[rows], x.high[rows]
                else:
                    low, high = x.low[q], x.high[q]
                inside = (low <= true) & (true <= high)
                if name == "UBM":  # w and e on the scale of the truth
                    inside = _on_scale(models[query.query_id], fit, data, q, p.field)
                elif p.kind == "position":
                    inside = inside[:-1] if name == "DCM" else inside[high > low]
                held.setdefault(p.name, []).append(np.ravel(inside))
    return {parameter: float(np.concatenate(x).mean()) for parameter, x in held.items()}


def _on_scale(model: Any, fit: Any, data: Patterns, q: int, field: str) -> np.ndarray:
    """UBM intervals hold given e(1, no click): compare with the truth on the fitted scale."""
    scale = fit.estimates["e"].value[q, 0, 0] / model.e[0, 0]
    x = fit.estimates[field]
    if field == "w":
        rows = slice(data.offsets[q], data.offsets[q + 1])
        true = model.w[data.item_ids[rows]] / scale
        return (x.low[rows] <= true) & (true <= x.high[rows])
    true = model.e * scale
    seen = (x.observations[q] > 0) & (np.arange(K * (K + 1)).reshape(K, K + 1) > 0)
    return ((x.low[q] <= true) & (true <= x.high[q]))[seen & (true < 1)]


def rows(logs: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Coverage of all fits."""
    out = []
    for label, (n, L) in SIZES.items():
        for name, method in FITS:
            found = coverage(name, method, n, L, logs, seed)
            out.append({"log": label, "model": name, "method": method, **found})
    return out
