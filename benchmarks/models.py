"""Fitting click models: folded statistics against plain Python that goes session by session.

The baselines are the textbook loops: for every SERP and rank, look up the parameters and add to
their counts. PBM does a few iterations of EM, scaled to 50; ours does 50, priors and intervals
included, starting from the click statistics table. CPU seconds, one process.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS
from logeval.running import seeds
from logeval.storage import schemas

SERPS, QUERIES, L, K = 35_000, 20, 60, 10
ITERATIONS = 50
BASELINE_ITERATIONS = 2

Session = tuple[int, list[int], list[int]]


def sessions(seed: int = 0) -> list[Session]:
    """SERPs of DCM users: few lists are shown often, many rarely, as in real logs."""
    rng = seeds.generator(seed, "benchmark", "models")
    out: list[Session] = []
    share = 1.0 / np.arange(1, QUERIES + 1)
    for q, n in enumerate((SERPS * share / share.sum()).astype(int)):
        model = DCM(items=np.arange(L), K=K, w=np.sort(rng.beta(1, 5, L))[::-1], v=np.full(K, 0.5))
        lists = np.array([_mixed(rng) for _ in range(300)])
        A = lists[np.minimum(rng.geometric(0.05, n) - 1, 299)]
        clicks = model.sample(A, rng.random(A.shape))
        out += [(q, a, c) for a, c in zip(A.tolist(), clicks.tolist(), strict=True)]
    return out


def _mixed(rng: np.random.Generator) -> np.ndarray:
    return np.argsort(np.arange(L) + rng.gumbel(0, 3.0, L))[:K]


def statistics(rows: list[Session]) -> pa.Table:
    counts: dict[tuple[int, tuple[int, ...], int], int] = defaultdict(int)
    for q, items, clicks in rows:
        counts[q, tuple(items), sum(c << k for k, c in enumerate(clicks))] += 1
    table = [
        {"query_id": q, "holdout": False, "items": list(items), "clicks": bits, "count": n}
        for (q, items, bits), n in counts.items()
    ]
    return pa.Table.from_pylist(table, schema=schemas.CLICK_STATISTICS)


def plain_pbm(rows: list[Session], iterations: int, pooled: bool) -> dict[Any, float]:
    """EM for the PBM, session by session."""
    w: dict[Any, float] = defaultdict(lambda: 0.5)
    e: dict[Any, float] = defaultdict(lambda: 0.5)
    for _ in range(iterations):
        new_w: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
        new_e: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
        for q, items, clicks in rows:
            for k, (item, c) in enumerate(zip(items, clicks, strict=True)):
                at = (0 if pooled else q, k)
                attraction, examination = w[q, item], e[at]
                if c:
                    up_w = up_e = 1.0
                else:
                    none = 1.0 - attraction * examination
                    up_w = (1.0 - examination) * attraction / none
                    up_e = (1.0 - attraction) * examination / none
                new_w[q, item][0] += up_w
                new_w[q, item][1] += 1.0
                new_e[at][0] += up_e
                new_e[at][1] += 1.0
        w.update({key: a / b for key, (a, b) in new_w.items()})
        e.update({key: a / b for key, (a, b) in new_e.items()})
    return w


def plain_dcm(rows: list[Session], pooled: bool) -> dict[Any, float]:
    """Counting for the DCM, session by session."""
    w: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
    v: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
    for q, items, clicks in rows:
        last = max((k for k, c in enumerate(clicks) if c), default=len(items))
        for k, (item, c) in enumerate(zip(items, clicks, strict=True)):
            if k <= last:
                w[q, item][0] += c
                w[q, item][1] += 1
            if c:
                v[0 if pooled else q, k][0] += k == last
                v[0 if pooled else q, k][1] += 1
    return {key: a / b for key, (a, b) in w.items()}


def _cpu(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    value = function()
    return value, time.process_time() - start


def rows() -> list[dict[str, Any]]:
    """One row per comparison: name, baseline, CPU seconds of both, and their ratio."""
    log = sessions()
    table = statistics(log)
    warm = patterns_of(table.slice(0, 50))
    for name, model in MODELS.items():  # compile
        for method in model.methods:
            fit_one(name, warm, Options(method, iterations=2))

    out = []
    for scope in ("per-query", "pooled"):
        pooled = scope == "pooled"
        plain, baseline = _cpu(lambda p=pooled: plain_pbm(log, BASELINE_ITERATIONS, p))  # type: ignore[misc]
        options = Options("em", scope, "pyclick", BASELINE_ITERATIONS, 0.0)
        check = fit_one("PBM", patterns_of(table), options)
        options = Options("em", scope, "pyclick", ITERATIONS, 0.0)
        _, ours = _cpu(lambda o=options: fit_one("PBM", patterns_of(table), o))  # type: ignore[misc]
        _agrees(check, plain)
        scaled = baseline * ITERATIONS / BASELINE_ITERATIONS
        out.append(_row(f"PBM, {scope}, {ITERATIONS} EM iterations", scaled, ours))
        plain, baseline = _cpu(lambda p=pooled: plain_dcm(log, p))  # type: ignore[misc]
        options = Options("guo", scope, "pyclick")
        fitted, ours = _cpu(lambda o=options: fit_one("DCM", patterns_of(table), o))  # type: ignore[misc]
        _agrees(fitted, plain)
        out.append(_row(f"DCM, {scope}, counting", baseline, ours))
    for scope in ("per-query", "pooled"):
        _, ours = _cpu(lambda s=scope: _all_models(table, s))  # type: ignore[misc]
        out.append(_row(f"all ten models to convergence, {scope}", None, ours))
    return out


def _all_models(table: pa.Table, scope: str) -> None:
    data = patterns_of(table)
    for name, model in MODELS.items():
        fit_one(name, data, Options(model.methods[0], scope))


def _agrees(fitted: Any, plain: dict[Any, float]) -> None:
    """The baseline computes the same attraction."""
    for query in fitted.queries:
        model = fitted.of(query)
        for item, w in zip(model.items.tolist(), model.w.tolist(), strict=True):
            assert abs(plain.get((query.query_id, item), 0.5) - w) < 1e-9


def _row(name: str, baseline: float | None, ours: float) -> dict[str, Any]:
    return {
        "name": name,
        "baseline": "plain Python, session by session" if baseline else None,
        "baseline_cpu_seconds": baseline,
        "cpu_seconds": ours,
        "ratio": baseline / ours if baseline else None,
    }


if __name__ == "__main__":
    for row in rows():
        ratio = f"{row['ratio']:8,.0f}x" if row["ratio"] else " " * 9
        print(f"{row['name']:45} {row['cpu_seconds']:8.3f} s CPU {ratio}")
