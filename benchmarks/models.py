"""Fitting click models: folded statistics against plain Python that goes session by session.

The baseline is the textbook loop: for every SERP and rank, look up the parameters and add to their
counts. It does a few iterations of EM, scaled to 50; ours does 50, priors and intervals included,
starting from the click statistics table. CPU seconds, one process.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
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


def plain_pbm(rows: list[Session], iterations: int) -> dict[Any, float]:
    """EM for the PBM, session by session."""
    w: dict[Any, float] = defaultdict(lambda: 0.5)
    e: dict[Any, float] = defaultdict(lambda: 0.5)
    for _ in range(iterations):
        new_w: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
        new_e: dict[Any, list[float]] = defaultdict(lambda: [1.0, 2.0])
        for q, items, clicks in rows:
            for k, (item, c) in enumerate(zip(items, clicks, strict=True)):
                at = (q, k)
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

    plain, baseline = _cpu(lambda: plain_pbm(log, BASELINE_ITERATIONS))
    short = Options("em", "per-query", "pyclick", BASELINE_ITERATIONS, 0.0)
    _agrees(fit_one("PBM", patterns_of(table), short), plain)
    options = Options("em", "per-query", "pyclick", ITERATIONS, 0.0)
    _, ours = _cpu(lambda: fit_one("PBM", patterns_of(table), options))
    scaled = baseline * ITERATIONS / BASELINE_ITERATIONS
    found = [_row(f"PBM, {ITERATIONS} EM iterations", scaled, ours)]
    for name, model in MODELS.items():
        options = Options(model.methods[0])
        _, ours = _cpu(lambda n=name, o=options: fit_one(n, patterns_of(table), o))  # type: ignore[misc]
        found.append(_row(f"{name}, to convergence", None, ours))
    return found


def _agrees(fitted: Any, plain: dict[Any, float]) -> None:
    """The baseline computes the same attraction."""
    for query in fitted.queries:
        model = fitted.of(query)
        for item, w in zip(model.items.tolist(), model.w.tolist(), strict=True):
            assert abs(plain.get((query.query_id, item), 0.5) - w) < 1e-9


def _row(name: str, baseline: float | None, ours: float) -> dict[str, Any]:
    return {
        "name": name,
        "CPU s": round(ours, 2),
        "plain Python, session by session": baseline and f"{baseline / ours:,.0f} times as long",
    }


if __name__ == "__main__":
    print(pd.DataFrame(rows()).to_string(index=False))
