"""How often the 95% intervals of fitted parameters hold the truth, on logs drawn from known models.

Logs of 12 queries with K = 8 positions, attraction and satisfaction from Beta(2, 5), what the items
of a query share uniform in [0.3, 0.8] (continuation of the DBN in [0.7, 0.95], examination falling
from 1; of the UBM e(1, 0) = 1). Lists are the best of noisy scores: of a score that has nothing to
do with attraction, or of its logit, as of a good ranker. A row per world, size of log and model;
attraction by how often items were shown. ``boundary`` rows have DCMs with
v = .5 .3 .1 .003 .001 .001, by position.

    python -m benchmarks.run intervals
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import logit

from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.running import seeds
from logeval.storage import schemas

QUERIES, K = 12, 8
SIZES = {"400 SERPs, L = 20": (400, 20), "400 SERPs, L = 100": (400, 100)}
SIZES |= {"4,000 SERPs, L = 20": (4000, 20), "4,000 SERPs, L = 100": (4000, 100)}
SHOWN = (5, 20, 100)  # bounds of how often an item was shown
BOUNDARY = np.array([0.5, 0.3, 0.1, 0.003, 0.001, 0.001])
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
        if name == "UBM" and p.field == "e":
            values["e"][0, 0] = 1.0
    return MODELS[name](items=np.arange(L), K=K, **values)


def clicks_of(
    models: Sequence[ClickModel], n: int, rng: np.random.Generator, K: int = K, quality: float = 0.0
) -> Patterns:
    """n SERPs of each model, as the estimators want them; by the attraction where ``quality``."""
    rows = []
    for q, model in enumerate(models):
        score = 0.5 * rng.normal(size=model.L)
        if quality:
            score = quality * logit(next(getattr(model, p.field) for p in model.PARAMETERS))
        A = np.argsort(-(score + rng.gumbel(size=(n, model.L))), axis=1)[:, :K]
        bits = model.sample(A, rng.random(A.shape)).astype(np.int64) @ (1 << np.arange(K))
        rows += [
            {"query_id": q, "holdout": False, "items": a, "clicks": c, "count": 1}
            for a, c in zip(A.tolist(), bits.tolist(), strict=True)
        ]
    return patterns_of(pa.Table.from_pylist(rows, schema=schemas.CLICK_STATISTICS))


def held(
    fit: ModelEstimate, data: Patterns, models: Sequence[ClickModel]
) -> Iterator[tuple[str, np.ndarray]]:
    """Whether true values are inside their intervals, by parameter, and by exposure or position."""
    for p in models[0].PARAMETERS:
        x = fit.estimates[p.field]
        for q, query in enumerate(data.queries):
            model = models[query.query_id]
            if p.kind == "item":
                rows = slice(data.offsets[q], data.offsets[q + 1])
                true = np.asarray(getattr(model, p.field))[data.item_ids[rows]]
                inside = (x.low[rows] <= true) & (true <= x.high[rows])
                place = np.searchsorted(SHOWN, data.impressions[rows])
                for b, label in enumerate((*(f"shown <= {s}" for s in SHOWN), "more")):
                    yield f"{p.name}, {label}", inside[place == b]
            else:
                low, high = np.atleast_1d(x.low[q]), np.atleast_1d(x.high[q])
                true = np.atleast_1d(getattr(model, p.field))
                # neither fixed, nor without an interval, nor without clicks that tell of it
                known = (high > low) & (np.atleast_1d(x.observations[q]) > 0)
                yield p.name, ((low <= true) & (true <= high))[known]


def coverage(
    name: str, method: str, n: int, L: int, logs: int, seed: int, quality: float
) -> dict[str, float]:
    """The share of true values inside their intervals."""
    found: dict[str, list[np.ndarray]] = {}
    for log in range(logs):
        rng = seeds.generator(seed, "intervals", name, n, L, log)
        models = [truth(name, L, rng) for _ in range(QUERIES)]
        data = clicks_of(models, n, rng, quality=quality)
        for label, inside in held(MODELS[name].fit(data, Options(method)), data, models):
            found.setdefault(label, []).append(inside)
    joined = {label: np.concatenate(x) for label, x in found.items()}
    return {label: float(x.mean()) if len(x) >= 20 else np.nan for label, x in joined.items()}


def boundary(n: int, scope: str, smoothing: str, logs: int, seed: int) -> dict[str, float]:
    """The share of true terminations inside their intervals, by position, and the mean width."""
    inside, width = [], []
    for log in range(logs):
        rng = seeds.generator(seed, "boundary", n, log)
        models = [
            MODELS["DCM"](items=np.arange(20), K=6, w=rng.beta(2, 5, 20), v=BOUNDARY)
            for _ in range(8)
        ]
        data = clicks_of(models, n, rng, 6, quality=1.0)
        x = MODELS["DCM"].fit(data, Options("em", scope, smoothing)).estimates["v"]  # type: ignore[arg-type]
        inside.append((x.low <= BOUNDARY) & (x.high >= BOUNDARY))
        width.append(x.high - x.low)
    by_position = np.concatenate(inside).mean(axis=0)
    out = {f"v({k + 1})": float(by_position[k]) for k in range(5)}
    return out | {"width of v(4), v(5)": float(np.concatenate(width)[:, 3:5].mean())}


def rows(logs: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Coverage of all fits in all worlds."""
    out: list[dict[str, Any]] = []
    for world, quality in (("by quality", 1.0), ("unrelated", 0.0)):
        for label, (n, L) in SIZES.items():
            for name, method in FITS if L == 100 and n == 400 else FITS[3:5]:
                found = coverage(name, method, n, L, logs, seed, quality)
                out.append(
                    {"exposure": world, "log": label, "model": name, "method": method, **found}
                )
    for scope, smoothing in (
        ("partial", "empirical-bayes"),
        ("per-query", "empirical-bayes"),
        ("per-query", "none"),
    ):
        for n in (400, 4000):
            label = {"exposure": "by quality", "log": f"boundary, {n:,} SERPs, L = 20"}
            found = boundary(n, scope, smoothing, logs, seed)
            out.append({**label, "model": f"DCM ({scope}, {smoothing})", "method": "em", **found})
    return out
